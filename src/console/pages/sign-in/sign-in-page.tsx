import { useSignal } from '@preact/signals';
import { endedBecause, signIn } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { Brand } from '../../shell/shell.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';

/** Asks for a token and finds out what it may do. */
export function SignInPage() {
  const token = useSignal('');
  const enter = useAction(() => signIn(token.value.trim()));
  return (
    <main class="sign-in">
      <Brand />
      <Card>
        <Form onSubmit={() => void enter.run()}>
          <div>
            <h1>Sign in</h1>
            <p class="muted">With a token of your account, or the operator’s.</p>
          </div>
          {endedBecause.value !== '' && <Notice kind="warn" title={endedBecause.value} />}
          <TextField
            label="Token"
            type="password"
            {...bound(token)}
            help="The first start of the service prints the tokens of account “default”."
            autofocus
            required
            mono
          />
          <p class="muted small">
            All tabs of this browser are signed in, for 7 days at most, or until none of them was
            open for 12 hours.
          </p>
          <FaultNotice fault={enter.fault} />
          <Button kind="primary" submit busy={enter.busy}>
            {enter.busy ? 'Signing in…' : 'Sign in'}
          </Button>
        </Form>
      </Card>
    </main>
  );
}
