import { isAccount, isOperator, session } from './api/session.ts';
import { AccountPage } from './pages/account/account-page.tsx';
import { AccountsPage } from './pages/admin/accounts-page.tsx';
import { SetupPage } from './pages/admin/setup-page.tsx';
import { SystemPage } from './pages/admin/system-page.tsx';
import { CrawlPage } from './pages/crawl/crawl-page.tsx';
import { CrawlerPage } from './pages/crawler/crawler-page.tsx';
import { CrawlersPage } from './pages/crawlers/crawlers-page.tsx';
import { NewCrawlerPage } from './pages/crawlers/new-crawler-page.tsx';
import { FindPage } from './pages/find/find-page.tsx';
import { JobPage } from './pages/job/job-page.tsx';
import { ProxiesPage } from './pages/proxies/proxies-page.tsx';
import { SignInPage } from './pages/sign-in/sign-in-page.tsx';
import { StoragePage } from './pages/storage/storage-page.tsx';
import { Link, segments } from './shell/route.tsx';
import { Shell } from './shell/shell.tsx';
import { Empty } from './ui/notice.tsx';

const ACCOUNT_PLACES = new Set([
  'crawlers',
  'crawl',
  'storage',
  'find',
  'jobs',
  'account',
  'proxies',
]);
const OPERATOR_PLACES = new Set(['accounts', 'system', 'setup']);

/** The whole console. */
export function App() {
  if (session.value === null) return null;
  if (session.value === undefined) return <SignInPage />;
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

function Page() {
  const [place = isAccount.value ? 'crawlers' : 'accounts', name, tab] = segments.value;
  const isOperators = OPERATOR_PLACES.has(place);
  if (isOperators ? !isOperator.value : ACCOUNT_PLACES.has(place) && !isAccount.value) {
    return (
      <Empty isPage title={`This page is for ${isOperators ? 'operators' : 'accounts'}`}>
        <p>
          {isOperators
            ? 'You are signed in as an account. It needs the admin token.'
            : 'You are signed in as an operator. It needs a token of the account.'}
        </p>
        <Link to="/" class="button">
          To the start
        </Link>
      </Empty>
    );
  }
  switch (place) {
    case 'crawlers':
      if (name === undefined) return <CrawlersPage />;
      // No crawler's name begins with a plus.
      if (name === '+new') return <NewCrawlerPage />;
      return <CrawlerPage key={name} name={name} tab={tab ?? 'overview'} />;
    case 'crawl':
      return <CrawlPage />;
    case 'storage':
      return <StoragePage />;
    case 'find':
      return <FindPage />;
    case 'jobs':
      return name === undefined ? <FindPage /> : <JobPage key={name} rid={name} />;
    case 'account':
      return <AccountPage />;
    case 'proxies':
      return <ProxiesPage />;
    case 'accounts':
      return <AccountsPage />;
    case 'system':
      return <SystemPage />;
    case 'setup':
      return <SetupPage />;
    default:
      return (
        <Empty isPage title="There is nothing here">
          <Link to="/" class="button">
            To the start
          </Link>
        </Empty>
      );
  }
}
