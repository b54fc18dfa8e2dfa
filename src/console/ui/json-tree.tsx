/** Entries of one object or list that are shown; the source has the rest. */
const MAX_ENTRIES = 500;
const OPEN_DEPTH = 2;

/** A JSON value that can be unfolded. */
export function JsonTree({ value }: { readonly value: unknown }) {
  return (
    <div class="tree">
      <Node name="" value={value} depth={0} />
    </div>
  );
}

function Node(props: { readonly name: string; readonly value: unknown; readonly depth: number }) {
  const { name, value, depth } = props;
  if (typeof value !== 'object' || value === null) {
    return (
      <div class="leaf">
        {name !== '' && <span class="key">{name}: </span>}
        <span class="value">{JSON.stringify(value)}</span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={depth < OPEN_DEPTH}>
      <summary>
        {name !== '' && <span class="key">{name} </span>}
        <span class="muted">{size}</span>
      </summary>
      {entries.slice(0, MAX_ENTRIES).map(([key, each]) => (
        <Node key={key} name={key} value={each} depth={depth + 1} />
      ))}
      {entries.length > MAX_ENTRIES && (
        <div class="leaf muted">{entries.length - MAX_ENTRIES} more in the source</div>
      )}
    </details>
  );
}
