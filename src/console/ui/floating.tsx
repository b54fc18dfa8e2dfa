import { type Signal, signal, useSignal } from '@preact/signals';
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** A notice that floats. Those of the same id are shown as one. */
interface Entry {
  readonly id: string;
  readonly children: ComponentChildren;
}

type Entries = Signal<ReadonlyMap<symbol, Entry>>;

/** The page's; each dialog has its own, as nothing under an open dialog can be used. */
const Region = createContext<Entries>(signal<ReadonlyMap<symbol, Entry>>(new Map()));

/** Shows its content in the region of the page or dialog, where it moves nothing when it comes or goes. */
export function Floating({ id, children }: Entry) {
  const entries = useContext(Region);
  const key = useRef(Symbol('floating')).current;
  // Its content may differ each time.
  useLayoutEffect(() => {
    entries.value = new Map(entries.peek()).set(key, { id, children });
  });
  useLayoutEffect(
    () => () => {
      const rest = new Map(entries.peek());
      rest.delete(key);
      entries.value = rest;
    },
    [],
  );
  return null;
}

/** Where floating notices appear. A dismissed one comes again after it has been gone. */
export function FloatingRegion() {
  const byId = new Map([...useContext(Region).value.values()].map((each) => [each.id, each]));
  const dismissed = useSignal<readonly string[]>([]);
  const shown = [...byId.values()].filter(({ id }) => !dismissed.value.includes(id));
  const ids = [...byId.keys()].join('\n');
  useLayoutEffect(() => {
    dismissed.value = dismissed.peek().filter((id) => byId.has(id));
  }, [ids]);
  if (shown.length === 0) return null;
  return (
    <section class="floating" aria-label="Notices">
      {shown.map(({ id, children }) => (
        <div class="floating-notice" key={id}>
          {children}
          <Button
            kind="plain"
            small
            label="Dismiss"
            onClick={() => {
              dismissed.value = [...dismissed.peek(), id];
            }}
          >
            <Icon name="close" size={14} />
          </Button>
        </div>
      ))}
    </section>
  );
}

/** Gives a dialog a region of its own, at its end. */
export function WithOwnRegion({ children }: { readonly children: ComponentChildren }) {
  const entries = useSignal<ReadonlyMap<symbol, Entry>>(new Map());
  return (
    <Region.Provider value={entries}>
      {children}
      <FloatingRegion />
    </Region.Provider>
  );
}
