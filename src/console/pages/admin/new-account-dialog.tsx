import { useSignal } from '@preact/signals';
import { operatorClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { Button } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';

/** Makes an account and shows its tokens, once. */
export function NewAccountDialog({ onClose }: { readonly onClose: () => void }) {
  const name = useSignal('');
  const email = useSignal('');
  const tokens = useSignal<{ readonly normal: string; readonly javascript: string } | undefined>(
    undefined,
  );
  const make = useAction(async () => {
    const made = await operatorClients().accounts.createAccount({
      name: name.value,
      email: email.value,
    });
    tokens.value = { normal: made.normalToken, javascript: made.javascriptToken };
  });
  return (
    <Dialog title="New account" insistent={tokens.value !== undefined} onClose={onClose}>
      {tokens.value !== undefined ? (
        <div class="stack">
          <Notice kind="ok" title="Hand these over now: they are shown this once." />
          <CodeBlock label="Normal token" text={tokens.value.normal} wrap />
          <CodeBlock label="JavaScript token" text={tokens.value.javascript} wrap />
          <div class="row end">
            <Button kind="primary" onClick={onClose}>
              I have saved them
            </Button>
          </div>
        </div>
      ) : (
        <Form onSubmit={() => void make.run()}>
          <TextField
            label="Name"
            name="name"
            fault={make.fault}
            {...bound(name)}
            help="1 to 64 letters, digits, _ . or -."
            required
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
      )}
    </Dialog>
  );
}
