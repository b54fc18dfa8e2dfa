import type { JSX } from 'preact';
import { isAccount, isOperator, lastAccount, session, unread } from './api/session.ts';
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
import { PAGES, type PagePath, pageOf } from './shell/pages.ts';
import { Link, segments } from './shell/route.tsx';
import { Brand, Shell } from './shell/shell.tsx';
import { FloatingRegion } from './ui/floating.tsx';
import { Empty, Notice } from './ui/notice.tsx';

/** What shows each page; `values` are the parts of its path that vary. */
const SHOWN: Readonly<Record<PagePath, (...values: string[]) => JSX.Element>> = {
  '/crawlers': () => <CrawlersPage />,
  '/crawlers/+new': () => <NewCrawlerPage />,
  '/crawlers/:name': (name = '') => <CrawlerPage key={name} name={name} tab="overview" />,
  '/crawlers/:name/:tab': (name = '', tab = '') => <CrawlerPage key={name} name={name} tab={tab} />,
  '/crawl': () => <CrawlPage />,
  '/storage': () => <StoragePage />,
  '/find': () => <FindPage />,
  '/jobs/:rid': (rid = '') => <JobPage key={rid} rid={rid} />,
  '/account': () => <AccountPage />,
  '/proxies': () => <ProxiesPage />,
  '/accounts': () => <AccountsPage />,
  '/system': () => <SystemPage />,
  '/setup': () => <SetupPage />,
};

/** The whole console. */
export function App() {
  if (session.value === null) return <Unread />;
  return (
    <>
      {session.value === undefined ? (
        <SignInPage />
      ) : (
        <Shell key={lastAccount.value}>
          <Page />
        </Shell>
      )}
      <FloatingRegion />
    </>
  );
}

/** Until it is known who is signed in. */
function Unread() {
  if (unread.value === undefined) return null;
  return (
    <main class="sign-in">
      <Brand />
      <Notice kind="bad" title={unread.value.text}>
        <p>This page opens by itself when it is known who is signed in.</p>
      </Notice>
    </main>
  );
}

function Page() {
  const start = isAccount.value ? 'crawlers' : 'accounts';
  const page = pageOf(segments.value.length === 0 ? [start] : segments.value);
  if (page === undefined) {
    return (
      <Empty isPage title="There is nothing here">
        <Link to="/" class="button">
          To the start
        </Link>
      </Empty>
    );
  }
  const isOperators = PAGES[page.path] === 'operator';
  if (isOperators ? !isOperator.value : !isAccount.value) {
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
  return SHOWN[page.path](...page.values);
}
