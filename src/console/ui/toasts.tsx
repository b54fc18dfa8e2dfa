import { signal } from '@preact/signals';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'ok' | 'bad';
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Says for a few seconds what an action has done. */
export function toast(text: string, kind: Toast['kind'] = 'ok'): void {
  lastId += 1;
  const id = lastId;
  toasts.value = [...toasts.peek().slice(-3), { id, text, kind }];
  setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Where toasts appear; screen readers announce them. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind }) => (
        <div class={`toast ${kind}`} key={id}>
          <span>{text}</span>
          <Button kind="plain" small label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" size={14} />
          </Button>
        </div>
      ))}
    </div>
  );
}

function dismiss(id: number): void {
  toasts.value = toasts.peek().filter((each) => each.id !== id);
}
