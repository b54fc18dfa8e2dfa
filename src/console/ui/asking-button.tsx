import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useAction } from '../api/use-action.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { FaultNotice } from './notice.tsx';

/** A button that asks before it does something that cannot be undone. */
export function AskingButton(props: {
  /** What is on the button. */
  readonly text: string;
  /** Its name, where the text does not say of what. */
  readonly label?: string;
  /** The question, and the heading of the dialog. */
  readonly question: string;
  /** What on the button of the dialog does it. */
  readonly verb: string;
  readonly children: ComponentChildren;
  readonly small?: boolean;
  readonly perform: () => Promise<void>;
}) {
  const isAsking = useSignal(false);
  const wasDone = useRef(false);
  const close = (): void => {
    isAsking.value = false;
  };
  const action = useAction(async () => {
    await props.perform();
    wasDone.current = true;
    close();
  });
  useEffect(
    () => () => {
      // The row of the button takes the focus with it, sometimes before the answer comes. Nothing under
      // an open dialog can have the focus, so this waits until the dialog is gone.
      if (wasDone.current || isAsking.peek())
        queueMicrotask(() => document.getElementById('main')?.focus());
    },
    [],
  );
  return (
    <>
      <Button
        opensDialog
        {...(props.small === true ? { small: true, kind: 'plain', class: 'bad-text' } : {})}
        {...(props.label === undefined ? {} : { label: props.label })}
        onClick={() => {
          isAsking.value = true;
        }}
      >
        {props.text}
      </Button>
      {isAsking.value && (
        <Dialog title={props.question} onClose={close}>
          {props.children}
          <FaultNotice fault={action.fault} />
          <div class="row end">
            <Button onClick={close}>Cancel</Button>
            <Button kind="danger" busy={action.busy} onClick={() => void action.run()}>
              {props.verb}
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
