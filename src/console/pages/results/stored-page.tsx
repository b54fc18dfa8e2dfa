import type { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { ONCE_MS, useFeed } from '../../api/use-feed.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Loading } from '../../ui/notice.tsx';
import { type CrawledPage, gunzipped, picturePath } from './page-content.ts';
import { ResultView } from './result-view.tsx';

/** A stored result by its `rid`. */
export function StoredPage({ rid, type }: { readonly rid: string; readonly type: TokenType }) {
  const { data, fault } = useFeed({
    key: `result ${rid}`,
    everyMs: ONCE_MS,
    poll: () => readResult(rid, type),
  });
  return data === undefined ? <Loading fault={fault} /> : <ResultView page={data} />;
}

/** The same in a dialog. */
export function StoredPageDialog(props: {
  readonly rid: string;
  readonly type: TokenType;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title="Result" wide onClose={props.onClose}>
      <StoredPage rid={props.rid} type={props.type} />
    </Dialog>
  );
}

async function readResult(rid: string, type: TokenType): Promise<CrawledPage> {
  const { result } = await clientsFor(type).storage.getResult({ rid });
  if (result === undefined) throw new Error('The service answered without a result.');
  return {
    ...result,
    ...(await gunzipped(result.body)),
    failure: result.failure ?? '',
    headers: result.originalHeaders,
    screenshot: picturePath(result.screenshotUrl),
    screenshotFailed: result.screenshotFailed ?? '',
  };
}
