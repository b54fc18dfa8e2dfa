import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { inTurns } from '../../domain/in-turns.ts';
import {
  type FailureReason,
  parseSuccessCodes,
  type StatusVerdict,
  verdictOnAnswer,
  verdictOnFailure,
} from '../../domain/status.ts';
import type { CrawlTask, Page } from '../engine.ts';
import { failedResponse, failureFields } from '../failed-page.ts';
import { detectBlock } from '../http/block-pages.ts';
import { requestedDelay } from '../requested-delay.ts';
import { pageBody } from '../text/page-body.ts';
import { type DocumentResponse, lastHeader } from './document-response.ts';

/** What was captured of a document. */
export interface PageContent {
  readonly response: DocumentResponse;
  /** Undefined when it is longer than pages may be. */
  readonly bytes: Uint8Array | undefined;
  /** Whether `bytes` are the document as HTML; else they are the body of the response. */
  readonly isHtml: boolean;
  /** Of `bytes`, when that of the response does not apply. */
  readonly contentType?: string;
  /** The address after redirects and navigation. */
  readonly url: string;
  /** Why a step of the parameters failed; the page is as it was then. */
  readonly stepFailure?: FailureReason | undefined;
}

/** The result of a crawl whose page was captured. */
export async function toPage(
  task: CrawlTask,
  content: PageContent,
  { clock, maxBodyBytes }: { readonly clock: ServiceClock; readonly maxBodyBytes: number },
): Promise<Page> {
  const { response, bytes, isHtml, url } = content;
  const captured = bytes ?? new Uint8Array(0);
  const type = content.contentType ?? lastHeader(response, 'content-type');
  const shown = isHtml
    ? { body: captured, contentType: 'text/html; charset=utf-8', isText: true }
    : await inTurns(
        pageBody(captured, type, { maxBytes: maxBodyBytes, hostname: URL.parse(url)?.hostname }),
      );
  const { body } = shown;
  if (body === undefined) return failedResponse(task, 'body_too_large', { ...response, url });
  const verdict = contentVerdict(task, content);
  return {
    cbStatus: verdict.cbStatus,
    originalStatus: response.status,
    url,
    ...shown,
    body,
    headers: response.headers,
    ...failureFields(verdict, requestedDelay(response, wallNow(clock))),
  };
}

function contentVerdict({ request }: CrawlTask, content: PageContent): StatusVerdict {
  const { response, bytes, stepFailure } = content;
  if (bytes === undefined) return verdictOnFailure('body_too_large');
  if (stepFailure !== undefined) return verdictOnFailure(stepFailure);
  const { status, headers } = response;
  return verdictOnAnswer({
    status,
    method: 'GET',
    isEmpty: isEmptyDocument(bytes),
    block: detectBlock({ status, headers: new Map(headers), body: bytes }),
    successCodes: parseSuccessCodes(request.parameters.custom_success_codes),
  });
}

/** Whether a document has no content: Chromium makes one even of an empty body. */
function isEmptyDocument(bytes: Uint8Array): boolean {
  if (bytes.length > 200) return false;
  const text = Buffer.from(bytes).toString();
  return text.replace(/<!doctype[^>]*>|<\/?(html|head|body)>|\s/gi, '') === '';
}
