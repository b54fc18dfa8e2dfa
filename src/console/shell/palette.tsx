import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Crawler } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../api/clients.ts';
import { faultOf } from '../api/fault.ts';
import { isAccount } from '../api/session.ts';
import { count } from '../format/numbers.ts';
import { runInto, startPush, urlsOf } from '../pages/crawler/push-run.ts';
import {
  areKnownPartial,
  crawlersSource,
  knownCrawlers,
  MAX_LISTED,
  typeOfCrawler,
} from '../pages/crawlers/crawler-feed.ts';
import { Dialog } from '../ui/dialog.tsx';
import { CheckField } from '../ui/field.tsx';
import { bound } from '../ui/form.tsx';
import { toast } from '../ui/toasts.tsx';
import { type Command, commands, openPanel, pasted } from './commands.ts';
import { Keys } from './keys.tsx';
import { navigate, segments } from './route.tsx';
import { hasKeys } from './theme.ts';

const MAX_SHOWN = 12;
/** Crawlers that a push is offered for. */
const MAX_TARGETS = 5;
const RID = /^[0-9a-f]{24}$/;
const URL_LINE = /^https?:\/\/\S+$/i;

/**
 * Does or opens anything by typing a part of its name. A `rid` is looked up, and a URL is found or
 * pushed; a pasted list of URLs is pushed.
 */
export function Palette() {
  const lines = useSignal(urlsOf(pasted.peek()));
  const typed = useSignal(lines.peek()[0] ?? '');
  const at = useSignal(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const found = matches(typed.value, lines.value);
  // Before the browser handles the next key, which belongs to the field already.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    // Pages other than the list do not read all crawlers.
    const reading = new AbortController();
    if (isAccount.peek() && knownCrawlers.peek().length === 0) {
      crawlersSource()
        .poll(reading.signal)
        .catch(() => undefined); // The commands are there without them.
    }
    return () => reading.abort();
  }, []);
  const close = (): void => {
    openPanel.value = undefined;
    pasted.value = '';
  };
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    close();
    command.run();
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Commands"
      onCancel={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <input
        class="input"
        type="text"
        placeholder="Crawler, command, URL, host or rid"
        role="combobox"
        aria-label="Crawler, command, URL, host or rid"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${at.value}` : undefined}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          lines.value = [typed.value.trim()];
          at.value = 0;
        }}
        onPaste={(event) => {
          const text = urlsOf(event.clipboardData?.getData('text/plain') ?? '');
          if (text.length < 2) return;
          event.preventDefault();
          lines.value = text;
          typed.value = text[0] ?? '';
          at.value = 0;
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            at.value = (at.value + step + found.length) % Math.max(found.length, 1);
          } else if (event.key === 'Enter') run(found[at.value]);
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Matches">
        {found.map((command, index) => (
          <li
            key={command.title}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at.value}
            onClick={() => run(command)}
          >
            <span class="clip">{command.title}</span>
            <Keys keys={command.keys} />
          </li>
        ))}
        {found.length === 0 && (
          <li role="option" aria-selected="false" class="muted">
            Nothing has this name.
          </li>
        )}
      </ul>
      {areKnownPartial.value && (
        <p class="muted small card-part">
          Only the first {count(MAX_LISTED)} crawlers are searched here. “Find” searches the names
          of all.
        </p>
      )}
    </dialog>
  );
}

/** All keys that do something here. */
export function Shortcuts() {
  const withKeys = commands.value.filter(({ keys }) => keys !== undefined);
  return (
    <Dialog
      title="Keyboard"
      onClose={() => {
        openPanel.value = undefined;
      }}
    >
      <CheckField label="Single keys" help="Off: only Ctrl K does something." {...bound(hasKeys)} />
      <ul class="stack tight">
        {[
          { title: 'Open any crawler or command', keys: 'Ctrl K' },
          { title: 'Find a URL, or push a list of URLs', keys: 'Ctrl V' },
          { title: 'Filter the list', keys: '/' },
          { title: 'This list', keys: '?' },
          ...withKeys,
        ].map(({ title, keys }) => (
          <li class="row spread" key={title}>
            <span>{title}</span>
            <Keys keys={keys} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function matches(typed: string, lines: readonly string[]): readonly Command[] {
  const text = typed.trim().toLowerCase();
  if (RID.test(text)) {
    return [{ title: `Find rid ${text}`, run: () => navigate(`/jobs/${text}`) }];
  }
  const all = commands.value.filter(({ title }) => title.toLowerCase().includes(text));
  if (text === '' || !isAccount.value) return all.slice(0, MAX_SHOWN);
  const found = [...all, ...crawlersLike(text)].slice(0, MAX_SHOWN);
  const pushes = lines.every((line) => URL_LINE.test(line)) ? pushCommands(lines) : [];
  if (lines.length > 1) return pushes;
  const asked = typed.trim();
  const run = (): void => navigate(`/find?q=${encodeURIComponent(asked)}`);
  return [...found, { title: `Find “${asked}” in URLs and hosts`, run }, ...pushes];
}

/** Crawlers with that part in their name, as many as are shown: there may be thousands. */
function crawlersLike(text: string): readonly Command[] {
  const found: Command[] = [];
  for (const { name } of knownCrawlers.value) {
    if (found.length === MAX_SHOWN) break;
    if (!`crawler ${name}`.toLowerCase().includes(text)) continue;
    found.push({ title: `Crawler ${name}`, run: () => navigate(`/crawlers/${name}`) });
  }
  return found;
}

/** The pushes of URLs into the crawler that is shown, or into those that were pushed into last. */
function pushCommands(urls: readonly string[]): readonly Command[] {
  const [place, name] = segments.value;
  const isOfOne = place === 'crawlers' && name !== undefined && name !== '+new';
  const what = urls.length === 1 ? 'this URL' : `${count(urls.length)} URLs`;
  return (isOfOne ? [name] : lastPushed()).map((into) => ({
    title: `Push ${what} into ${into}`,
    run: () => void push(into, urls),
  }));
}

function lastPushed(): readonly string[] {
  const pushedAt = ({ activity }: Crawler): number => Number(activity?.lastPushAt?.seconds ?? 0n);
  return knownCrawlers.value
    .toSorted((left, right) => pushedAt(right) - pushedAt(left))
    .slice(0, MAX_TARGETS)
    .map(({ name }) => name);
}

async function push(crawler: string, urls: readonly string[]): Promise<void> {
  const open = runInto(crawler);
  if (open !== undefined && open.state !== 'ended') {
    return toast(`The push into ${crawler} before it has not ended.`, 'bad');
  }
  try {
    const type = await typeOfCrawler(crawler);
    if (type === undefined) return toast(`No crawler is called ${crawler}.`, 'bad');
    startPush(clientsFor(type).pushes, crawler, urls, {}, () => undefined);
    navigate(`/crawlers/${crawler}/push`);
  } catch (error) {
    toast(faultOf(error).text, 'bad');
  }
}
