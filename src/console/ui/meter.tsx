import { count } from '../format/numbers.ts';

/** How much of a limit is used. Without a limit only the number. */
export function Meter(props: {
  readonly label: string;
  readonly used: number;
  readonly limit: number;
  readonly show?: (value: number) => string;
}) {
  const { label, used, limit, show = count } = props;
  const share = limit === 0 ? 0 : Math.min(used / limit, 1);
  const kind = share >= 0.95 ? 'bad' : share >= 0.8 ? 'warn' : undefined;
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
