import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

const ROOT = '/console';

/** The present address below `/console`. It holds names and filters, never a token. */
const address = signal(readAddress());
addEventListener('popstate', () => {
  address.value = readAddress();
});

/** The parts of the path: `['crawlers', 'shop', 'jobs']`. */
export const segments = computed(() =>
  (address.value.split('?', 1)[0] ?? '').split('/').filter((part) => part !== ''),
);

/** The query. */
export const query = computed(() => new URLSearchParams(address.value.split('?')[1] ?? ''));

/** Goes to a path below `/console`, such as `/crawlers`. */
export function navigate(path: string): void {
  if (path === address.peek()) return;
  history.pushState(null, '', ROOT + path);
  address.value = readAddress();
  scrollTo(0, 0);
}

/** Changes one parameter of the query in place, so that a filter survives a reload. */
export function setQuery(name: string, value: string): void {
  const next = new URLSearchParams(query.peek());
  if (value === '') next.delete(name);
  else next.set(name, value);
  const path = `/${segments.peek().join('/')}`;
  const text = next.toString();
  replaceAddress(path + (text === '' ? '' : `?${text}`));
}

/** Goes to a path in place of the present one, to which there is no way back. */
export function replaceAddress(path: string): void {
  history.replaceState(null, '', ROOT + path);
  address.value = readAddress();
}

/** A choice that is a parameter of the address, so that a link and a reload keep it. */
export function queryField<Value extends string>(
  name: string,
  values: readonly Value[],
  fallback: Value,
) {
  const read = (from: URLSearchParams): Value =>
    values.find((each) => each === from.get(name)) ?? fallback;
  return {
    get value(): Value {
      return read(query.value);
    },
    set value(next: Value) {
      setQuery(name, next === fallback ? '' : next);
    },
    peek: (): Value => read(query.peek()),
  };
}

/** The properties of {@link Link}. */
interface LinkProps {
  readonly to: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly current?: boolean;
  readonly title?: string;
}

/** A link within the console. */
export function Link({ to, children, current = false, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={ROOT + to}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}

function readAddress(): string {
  return location.pathname.slice(ROOT.length) + location.search;
}
