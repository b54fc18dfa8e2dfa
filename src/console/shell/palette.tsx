import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { isAccount } from '../api/session.ts';
import { knownCrawlers } from '../pages/crawlers/crawler-feed.ts';
import { Dialog } from '../ui/dialog.tsx';
import { CheckField } from '../ui/field.tsx';
import { bound } from '../ui/form.tsx';
import { type Command, commands, openPanel } from './commands.ts';
import { Keys } from './keys.tsx';
import { navigate } from './route.tsx';
import { hasKeys } from './theme.ts';

const MAX_SHOWN = 12;
const RID = /^[0-9a-f]{24}$/;

/** Does or opens anything by typing a part of its name; a `rid` is looked up. */
export function Palette() {
  const typed = useSignal('');
  const at = useSignal(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const found = matches(typed.value);
  // Before the browser handles the next key, which belongs to the field already.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const close = (): void => {
    openPanel.value = undefined;
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

function matches(typed: string): readonly Command[] {
  const text = typed.trim().toLowerCase();
  if (RID.test(text)) {
    return [{ title: `Find rid ${text}`, run: () => navigate(`/jobs/${text}`) }];
  }
  const crawlers = knownCrawlers.value.map(
    ({ name }): Command => ({
      title: `Crawler ${name}`,
      run: () => navigate(`/crawlers/${name}`),
    }),
  );
  const all = [...commands.value, ...(text === '' ? [] : crawlers)];
  const found = all.filter(({ title }) => title.toLowerCase().includes(text)).slice(0, MAX_SHOWN);
  if (text === '' || !isAccount.value) return found;
  const asked = typed.trim();
  const run = (): void => navigate(`/find?q=${encodeURIComponent(asked)}`);
  return [...found, { title: `Find “${asked}” in URLs and hosts`, run }];
}
