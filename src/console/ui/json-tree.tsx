import { useSignal } from '@preact/signals';

/** Entries of one object or list that are shown; the source has the rest. */
const MAX_ENTRIES = 500;
/** What is open at first: the value itself, and small ones in it. */
const OPEN_DEPTH = 2;
const OPEN_ENTRIES = 50;

/** A number of JSON that JavaScript writes otherwise, such as `12345678901234567890` or `1.0`. */
class WrittenNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** May be part of a number that JavaScript writes otherwise; also within texts. */
const MAY_CHANGE = /[\d.]{16}|\de|\.\d*0(?!\d)|\b0\.0{6}|-0(?![.\d])/i;

/**
 * Parses JSON for {@link JsonTree}, which shows numbers as they are written. Throws if the text is not
 * JSON. Throws also if its numbers may be changed, and it is too deep or the browser too old to tell how.
 */
export function parseJson(text: string): unknown {
  // Without a reviver, which fails at some thousand levels.
  if (!MAY_CHANGE.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== 'number') return value;
    const source = context?.source;
    if (source === undefined) throw new Error('the browser does not tell how numbers were written');
    return source === JSON.stringify(value) ? value : new WrittenNumber(source);
  });
}

/** A value of {@link parseJson} that can be unfolded. */
export function JsonTree({ value }: { readonly value: unknown }) {
  return (
    <div class="tree">
      <Node name="" value={value} depth={0} />
    </div>
  );
}

function Node(props: { readonly name: string; readonly value: unknown; readonly depth: number }) {
  const { name, value, depth } = props;
  if (typeof value !== 'object' || value === null || value instanceof WrittenNumber) {
    return (
      <div class="leaf">
        {name !== '' && <span class="key">{name}: </span>}
        <span class="value">
          {value instanceof WrittenNumber ? value.text : JSON.stringify(value)}
        </span>
      </div>
    );
  }
  return <Branch name={name} value={value} depth={depth} />;
}

/** Has its entries only while it is open: a page may nest or repeat them to any number. */
function Branch(props: { readonly name: string; readonly value: object; readonly depth: number }) {
  const { name, value, depth } = props;
  const entries = Object.entries(value);
  const isSmall = depth < OPEN_DEPTH && entries.length <= OPEN_ENTRIES;
  const isOpen = useSignal(depth === 0 || isSmall);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details
      open={isOpen.value}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>
        {name !== '' && <span class="key">{name} </span>}
        <span class="muted">{size}</span>
      </summary>
      {isOpen.value &&
        entries
          .slice(0, MAX_ENTRIES)
          .map(([key, each]) => <Node key={key} name={key} value={each} depth={depth + 1} />)}
      {isOpen.value && entries.length > MAX_ENTRIES && (
        <div class="leaf muted">{entries.length - MAX_ENTRIES} more in the source</div>
      )}
    </details>
  );
}
