import { useSignal } from '@preact/signals';
import { operatorClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { derivedName } from '../../format/derived-name.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { ShownOnce } from '../../ui/shown-once.tsx';

/** Makes an account and shows its tokens, once. */
export function NewAccountDialog({ onClose }: { readonly onClose: () => void }) {
  const name = useSignal('');
  const email = useSignal('');
  const tokens = useSignal<{ readonly normal: string; readonly javascript: string } | undefined>(
    undefined,
  );
  const derived = derivedName(email.value);
  const chosen = name.value || derived;
  const make = useAction(async () => {
    const made = await operatorClients().accounts.createAccount({
      name: chosen,
      email: email.value,
    });
    tokens.value = { normal: made.normalToken, javascript: made.javascriptToken };
  });
  if (tokens.value !== undefined) {
    const { normal, javascript } = tokens.value;
    return (
      <ShownOnce
        title={`Tokens of ${chosen}`}
        secrets={[
          ['Normal token', normal],
          ['JavaScript token', javascript],
        ]}
        onSaved={onClose}
      >
        <p>Hand these over now: they are shown this once.</p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="New account" onClose={onClose}>
      <Form onSubmit={() => void make.run()}>
        <TextField
          label="Name"
          name="name"
          fault={make.fault}
          {...bound(name)}
          help="1 to 64 letters, digits, _ . or -. Empty: the e-mail address."
          placeholder={derived}
          required={derived === ''}
          autofocus
          mono
        />
        <TextField
          label="E-mail"
          name="email"
          type="email"
          fault={make.fault}
          {...bound(email)}
          help="Told of paused crawlers and a full queue; empty for nobody."
        />
        <FaultNotice fault={make.fault} />
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" submit busy={make.busy}>
            Make account
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
