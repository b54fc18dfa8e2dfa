import { computed, signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { hasKeys } from './theme.ts';

/** Something the user can do, from the palette or by its keys. */
export interface Command {
  readonly title: string;
  /** One key such as `n`, or two in a row such as `g c`. */
  readonly keys?: string;
  readonly run: () => void;
}

const byOwner = signal<ReadonlyMap<symbol, readonly Command[]>>(new Map());

/** What can be done now: the commands of the shell and of the page. */
export const commands = computed(() => [...byOwner.value.values()].flat());

/** What was pasted outside of a field, which the palette opens with. */
export const pasted = signal('');

/** Whether the palette, or the list of shortcuts, is open. */
export const openPanel = signal<'palette' | 'shortcuts' | undefined>(undefined);

/** Offers commands while the component is shown. */
export function useCommands(list: readonly Command[]): void {
  const latest = useRef(list);
  latest.current = list;
  const titles = list.map(({ title, keys }) => `${title} ${keys}`).join('\n');
  useLayoutEffect(() => {
    const owner = Symbol('commands');
    const lasting = latest.current.map((command, at) => ({
      ...command,
      run: () => (latest.current[at] ?? command).run(),
    }));
    byOwner.value = new Map(byOwner.peek()).set(owner, lasting);
    return () => {
      const rest = new Map(byOwner.peek());
      rest.delete(owner);
      byOwner.value = rest;
    };
  }, [titles]);
}

/** How long the second key of a pair may take. */
const PAIR_MS = 1_200;
let first: { readonly key: string; readonly at: number } | undefined;

/** Runs the command of a pressed key, unless the user is writing or a dialog is open. */
export function onKey(event: KeyboardEvent): void {
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    openPanel.value = openPanel.peek() === 'palette' ? undefined : 'palette';
    return;
  }
  if (!hasKeys.peek()) return;
  if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event.target)) return;
  if (document.querySelector('dialog[open]') !== null) return;
  if (event.key === '?') {
    openPanel.value = 'shortcuts';
    return;
  }
  if (event.key === '/') {
    const field = document.querySelector<HTMLInputElement>('input[type="search"]');
    if (field === null) return;
    event.preventDefault();
    field.focus();
    return;
  }
  const pair =
    first !== undefined && event.timeStamp - first.at < PAIR_MS
      ? `${first.key} ${event.key}`
      : event.key;
  const command = commands.peek().find(({ keys }) => keys === pair);
  first = command === undefined ? { key: event.key, at: event.timeStamp } : undefined;
  if (command === undefined) return;
  event.preventDefault();
  command.run();
}

/** Opens the palette with what is pasted, unless it is pasted into a field or a dialog. */
export function onPaste(event: ClipboardEvent): void {
  const text = event.clipboardData?.getData('text/plain').trim() ?? '';
  if (text === '' || isWriting(event.target)) return;
  if (document.querySelector('dialog[open]') !== null) return;
  // Or it is pasted into the palette again, which has the focus by then.
  event.preventDefault();
  pasted.value = text;
  openPanel.value = 'palette';
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}
