import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useAction } from '../api/use-action.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { TextField } from './field.tsx';
import { bound, Form } from './form.tsx';
import { FaultNotice } from './notice.tsx';

/** Asks for the name of what is about to be lost before it is. */
export function ConfirmByName(props: {
  readonly title: string;
  readonly name: string;
  /** The verb on the button. */
  readonly verb: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
  readonly perform: () => Promise<void>;
}) {
  const typed = useSignal('');
  const action = useAction(props.perform);
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <Form
        onSubmit={() => {
          if (typed.value === props.name) void action.run();
        }}
      >
        {props.children}
        <TextField label={`Type ${props.name} to confirm`} {...bound(typed)} autofocus mono />
        <FaultNotice fault={action.fault} />
        <div class="row end">
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind="danger" submit busy={action.busy} disabled={typed.value !== props.name}>
            {props.verb}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
