import { Link } from '../../shell/route.tsx';
import { Empty } from '../../ui/notice.tsx';

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
