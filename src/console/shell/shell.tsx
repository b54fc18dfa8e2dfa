import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { isAccount, isOperator, session, signOut } from '../api/session.ts';
import { CRAWLER_TABS, isCrawlerTab } from '../pages/crawler/tabs.ts';
import { Button } from '../ui/button.tsx';
import { Icon, type IconName } from '../ui/icon.tsx';
import { Toasts, toast } from '../ui/toasts.tsx';
import { useCurrentInView } from '../ui/use-current-in-view.ts';
import { onKey, onPaste, openPanel, pasted, useCommands } from './commands.ts';
import { Keys } from './keys.tsx';
import { LiveBadge } from './live-badge.tsx';
import { Palette, Shortcuts } from './palette.tsx';
import { PushPills } from './push-pill.tsx';
import { Link, navigate, segments } from './route.tsx';
import { appliedTheme, density, theme } from './theme.ts';

interface Place {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly keys: string;
}

const ACCOUNT_PLACES: readonly Place[] = [
  { path: '/crawlers', title: 'Crawlers', icon: 'queue', keys: 'g c' },
  { path: '/crawl', title: 'Crawl', icon: 'crawl', keys: 'g p' },
  { path: '/storage', title: 'Storage', icon: 'storage', keys: 'g r' },
  { path: '/find', title: 'Find', icon: 'find', keys: 'g f' },
  { path: '/proxies', title: 'Proxies', icon: 'proxies', keys: 'g x' },
  { path: '/account', title: 'Account', icon: 'account', keys: 'g a' },
];
const OPERATOR_PLACES: readonly Place[] = [
  { path: '/accounts', title: 'Accounts', icon: 'accounts', keys: 'g t' },
  { path: '/system', title: 'System', icon: 'system', keys: 'g s' },
  { path: '/setup', title: 'Setup', icon: 'setup', keys: 'g u' },
];

/** What surrounds every page: places, search, the state of the connection. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const places = [
    ...(isAccount.value ? ACCOUNT_PLACES : []),
    ...(isOperator.value ? OPERATOR_PLACES : []),
  ];
  const here = placeOf(segments.value[0]) ?? places[0]?.path;
  const main = useRef<HTMLElement>(null);
  const placesRow = useCurrentInView(here ?? '');
  const isFirst = useRef(true);
  useCommands([
    ...places.map(({ path, title, keys }) => ({
      title: `Go to ${title}`,
      keys,
      run: () => navigate(path),
    })),
    { title: 'Switch between light and dark', run: switchTheme },
    { title: 'Switch between roomy and compact rows', run: switchDensity },
    { title: 'Sign out', run: () => void leave() },
  ]);
  useLayoutEffect(() => {
    addEventListener('keydown', onKey);
    addEventListener('paste', onPaste);
    return () => {
      removeEventListener('keydown', onKey);
      removeEventListener('paste', onPaste);
      // Another account finds it closed, without what was pasted into it.
      openPanel.value = undefined;
      pasted.value = '';
    };
  }, []);
  const path = segments.value.slice(0, 2).join('/');
  const title = titleOf(segments.value);
  useLayoutEffect(() => {
    // A screen reader begins the new page at its start, as it does with a loaded one, unless a field of
    // the page has taken the focus.
    const hasFocus = main.current?.contains(document.activeElement);
    if (!isFirst.current && !hasFocus) main.current?.focus();
    isFirst.current = false;
  }, [path]);
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);

  return (
    <>
      <a class="skip-link" href="#main">
        Skip to the content
      </a>
      <div class="shell">
        <aside class="side" aria-label="Console">
          <Brand />
          <nav class="nav" aria-label="Places" ref={placesRow}>
            {places.map((place) => (
              <Link key={place.path} to={place.path} current={here === place.path}>
                <Icon name={place.icon} /> {place.title}
              </Link>
            ))}
          </nav>
          <div class="side-foot">
            <Button
              kind="plain"
              opensDialog
              onClick={() => {
                openPanel.value = 'shortcuts';
              }}
            >
              Keyboard <Keys keys="?" />
            </Button>
            <Button kind="plain" onClick={() => void leave()}>
              <Icon name="leave" /> Sign out
            </Button>
            <a class="button plain" href="/docs">
              API reference
            </a>
            <small class="version">Version {document.documentElement.dataset['version']}</small>
          </div>
        </aside>
        <div>
          <header class="bar">
            <Crumbs />
            <div class="bar-end">
              <LiveBadge />
              <Who />
              <PushPills />
              <Button
                opensDialog
                onClick={() => {
                  openPanel.value = 'palette';
                }}
                class="wide-only"
              >
                <Icon name="find" size={16} /> Search <Keys keys="Ctrl K" />
              </Button>
              <Button
                kind="plain"
                class="icon-only wide-only"
                label="Row height"
                onClick={switchDensity}
              >
                <Icon name="rows" />
              </Button>
              <Button
                kind="plain"
                class="icon-only"
                label={appliedTheme.value === 'dark' ? 'Light theme' : 'Dark theme'}
                onClick={switchTheme}
              >
                <Icon name="theme" />
              </Button>
              <Button
                kind="plain"
                class="icon-only narrow-only"
                label="Search"
                opensDialog
                onClick={() => {
                  openPanel.value = 'palette';
                }}
              >
                <Icon name="find" />
              </Button>
              <Button
                kind="plain"
                class="icon-only narrow-only"
                label="Sign out"
                onClick={() => void leave()}
              >
                <Icon name="leave" />
              </Button>
            </div>
          </header>
          <main class="page" id="main" tabIndex={-1} ref={main}>
            {children}
          </main>
        </div>
      </div>
      {openPanel.value === 'palette' && <Palette />}
      {openPanel.value === 'shortcuts' && <Shortcuts />}
      <Toasts />
    </>
  );
}

/** The title of the window: the innermost part of the address first. */
function titleOf(parts: readonly string[]): string {
  const [first = '', name, tab] = parts;
  const place = [...ACCOUNT_PLACES, ...OPERATOR_PLACES].find(({ path }) => path === placeOf(first));
  const part = tab !== undefined && isCrawlerTab(tab) ? CRAWLER_TABS[tab] : tab;
  const shown = [part, name === '+new' ? 'New' : name].filter((each) => each !== undefined);
  return [...shown, place?.title, 'Queued Crawler'].filter(Boolean).join(' · ');
}

/** The name of the product. */
export function Brand() {
  return (
    <a class="brand" href="/console">
      <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="currentColor" />
        <path
          d="M9 10h14M9 16h14M9 22h8"
          stroke="var(--on-accent)"
          stroke-width="3"
          stroke-linecap="round"
        />
      </svg>
      Queued Crawler
    </a>
  );
}

/** The account and its tokens that calls are made with. */
function Who() {
  const { account = '', tokens = [] } = session.value ?? {};
  const names = tokens.map((kind) => TOKEN_NAMES[kind]).join(' and ');
  return (
    <span class="who muted wide-only" title={`Signed in with the ${names} token`}>
      {account !== '' && <b class="clip">{account}</b>} {names} token
    </span>
  );
}

const TOKEN_NAMES = { normal: 'Normal', javascript: 'JavaScript', admin: 'admin' } as const;

async function leave(): Promise<void> {
  try {
    await signOut();
  } catch {
    toast('The service does not answer: you are still signed in.', 'bad');
  }
}

/** The place that a page belongs to; jobs are found. */
function placeOf(first: string | undefined): string | undefined {
  return first === undefined ? undefined : `/${first === 'jobs' ? 'find' : first}`;
}

function Crumbs() {
  const [first, ...rest] = segments.value;
  if (first === undefined || rest.length === 0) return null;
  const here = placeOf(first);
  const title = [...ACCOUNT_PLACES, ...OPERATOR_PLACES].find(({ path }) => path === here);
  return (
    <nav class="crumbs" aria-label="You are here">
      <Link to={here ?? '/'}>{title?.title ?? first}</Link>
      <span class="muted" aria-hidden="true">
        /
      </span>
      <span class="clip">{rest[0] === '+new' ? 'New' : rest[0]}</span>
    </nav>
  );
}

function switchTheme(): void {
  theme.value = appliedTheme.peek() === 'dark' ? 'light' : 'dark';
}

function switchDensity(): void {
  density.value = density.peek() === 'compact' ? 'comfortable' : 'compact';
}
