import type { ComponentChildren } from 'preact';

/** The properties of {@link Button}. */
interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: () => void;
  readonly kind?: 'primary' | 'danger' | 'plain';
  readonly small?: boolean;
  /** Submits the form it stands in. */
  readonly submit?: boolean;
  /** Under way: it cannot be pressed again, and keeps the focus. */
  readonly busy?: boolean;
  readonly disabled?: boolean;
  /** The name, where the content is an icon; also shown on hover. */
  readonly label?: string;
  readonly class?: string;
  readonly pressed?: boolean;
  /** Whether it opens a dialog, which screen readers say. */
  readonly opensDialog?: boolean;
}

/** A button. */
export function Button(props: ButtonProps) {
  const { kind, small, submit = false, busy = false, label } = props;
  const classes = ['button', kind, small && 'small', props.class].filter(Boolean).join(' ');
  return (
    <button
      type={submit ? 'submit' : 'button'}
      class={classes}
      disabled={props.disabled}
      aria-disabled={busy ? true : undefined}
      aria-label={label}
      aria-pressed={props.pressed}
      aria-haspopup={props.opensDialog ? 'dialog' : undefined}
      title={label}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else props.onClick?.();
      }}
    >
      {props.children}
    </button>
  );
}
