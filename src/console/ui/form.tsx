import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

/** Fields that are sent by the Enter key or a button; the browser checks them first. */
export function Form(props: {
  readonly onSubmit: () => void;
  /** Default `stack`: one below the other. */
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <form
      class={props.class ?? 'stack'}
      onSubmit={(event) => {
        event.preventDefault();
        props.onSubmit();
      }}
    >
      {props.children}
    </form>
  );
}

/** What makes a field show a signal and change it. */
export function bound<Value>(signal: Signal<Value>) {
  return {
    value: signal.value,
    onInput: (value: Value): void => {
      signal.value = value;
    },
  };
}
