import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** A titled part of a page. `flush` is for tables, which reach its edges. */
export function Card(props: {
  readonly title?: string;
  readonly actions?: ComponentChildren;
  readonly flush?: boolean;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  const { title, actions } = props;
  return (
    <section
      class={`card${props.flush ? ' flush' : ''}`}
      aria-labelledby={title === undefined ? undefined : id}
    >
      {(title !== undefined || actions !== undefined) && (
        <div class="card-head">
          {title !== undefined && <h2 id={id}>{title}</h2>}
          {actions}
        </div>
      )}
      {props.children}
    </section>
  );
}

/** Characters of a fact that fit into a column; longer ones get a line of their own. */
const MAX_SHORT = 40;

/** Names and values. */
export function Facts({
  items,
}: {
  readonly items: readonly (readonly [string, ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {items.map(([name, value]) => (
        <div key={name} class={typeof value === 'string' && value.length > MAX_SHORT ? 'long' : ''}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The few numbers a page is about. */
export function Figures({
  items,
}: {
  readonly items: readonly {
    readonly name: string;
    readonly value: ComponentChildren;
    readonly of?: ComponentChildren;
    readonly kind?: 'ok' | 'warn' | 'bad' | undefined;
  }[];
}) {
  return (
    <dl class="figures">
      {items.map(({ name, value, of, kind }) => (
        <div class="figure" key={name}>
          <dt>{name}</dt>
          <dd class={kind === undefined ? undefined : `${kind}-text`}>
            {value} {of !== undefined && <small>{of}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
