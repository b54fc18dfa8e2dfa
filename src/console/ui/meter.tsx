import { count } from '../format/numbers.ts';

/** How much of a limit is used. Without a limit only the number. */
export function Meter(props: {
  readonly label: string;
  readonly used: number;
  readonly limit: number;
  readonly show?: (value: number) => string;
  /** Whether reaching the limit is as it should be. */
  readonly mayBeFull?: boolean;
}) {
  const { label, used, limit, show = count } = props;
  const share = limit === 0 ? 0 : Math.min(used / limit, 1);
  const kind = props.mayBeFull ? undefined : kindOf(share);
  return (
    <div class="stack tight">
      <div class="row spread">
        <span>{label}</span>
        <span class="number">
          {show(used)} <span class="muted">of {limit === 0 ? 'no limit' : show(limit)}</span>
        </span>
      </div>
      <div class="meter" aria-hidden="true">
        {share > 0 && <span class={kind} style={{ width: `${share * 100}%` }} />}
      </div>
    </div>
  );
}

function kindOf(share: number): 'bad' | 'warn' | undefined {
  if (share >= 0.95) return 'bad';
  return share >= 0.8 ? 'warn' : undefined;
}
