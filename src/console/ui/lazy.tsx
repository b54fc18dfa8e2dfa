import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';

/** A component whose code is loaded when it is first shown; room is kept for it until then. */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  const loaded = signal<{ readonly component: ComponentType<Props> } | undefined>(undefined);
  let asked = false;
  return function Lazy(props: Props) {
    if (!asked) {
      asked = true;
      void load().then((component) => {
        loaded.value = { component };
      });
    }
    const Component = loaded.value?.component;
    return Component === undefined ? <Room /> : <Component {...props} />;
  };
}

/** As high as a chart with a legend of one line. */
function Room() {
  return (
    <div class="stack tight">
      <p class="legend">&nbsp;</p>
      <div class="chart" />
    </div>
  );
}
