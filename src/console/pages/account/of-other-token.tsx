import { useRef } from 'preact/hooks';
import type { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { tokenTypes } from '../../api/session.ts';
import { Link } from '../../shell/route.tsx';
import { Empty } from '../../ui/notice.tsx';

/** Whether the session does not have the token of that type, or no longer. */
export const isOfOtherToken = ({ type }: { readonly type: TokenType }): boolean =>
  !tokenTypes.value.includes(type);

/** What was found, or what was found before the session lost its token: with the other one it is not found. */
export function useFound<Found extends { readonly type: TokenType }>(
  found: Found | undefined,
): Found | undefined {
  const last = useRef(found);
  if (found !== undefined) last.current = found;
  else if (last.current !== undefined && !isOfOtherToken(last.current)) last.current = undefined;
  return last.current;
}

/** In place of a page whose calls need a token that the session does not have, or no longer. */
export function OfOtherToken({ title }: { readonly title: string }) {
  return (
    <Empty isPage title={title}>
      <p>You are not signed in with it, or it was replaced.</p>
      <Link to="/account" class="button">
        Add the token
      </Link>
    </Empty>
  );
}
