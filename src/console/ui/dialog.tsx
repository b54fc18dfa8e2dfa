import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { WithOwnRegion } from './floating.tsx';
import { Icon } from './icon.tsx';

/** A modal dialog, open while it is rendered. The browser keeps the focus in it; Escape closes it. */
export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly wide?: boolean;
  /** Whether only a button of its content closes it: what it shows is not shown again. */
  readonly insistent?: boolean;
  readonly children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the browser handles the next key, which belongs to the dialog already.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog${props.wide ? ' wide' : ''}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!props.insistent) props.onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current && !props.insistent) props.onClose();
      }}
    >
      <WithOwnRegion>
        <div class="stack">
          <div class="row spread">
            <h2 id={id}>{props.title}</h2>
            {!props.insistent && (
              <Button kind="plain" class="icon-only" label="Close" onClick={props.onClose}>
                <Icon name="close" />
              </Button>
            )}
          </div>
          {props.children}
        </div>
      </WithOwnRegion>
    </dialog>
  );
}
