import { Code, ConnectError } from '@connectrpc/connect';
import { useSignal } from '@preact/signals';
import { endedBecause, startSession } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { Brand } from '../../shell/shell.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { CheckField, TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import { identify, isOperatorToken } from './identify.ts';

/** Asks for a token and finds out what it may do. */
export function SignInPage() {
  const token = useSignal('');
  const keep = useSignal(false);
  const signIn = useAction(async () => {
    const typed = token.value.trim();
    const found = await identify(typed);
    if (found !== undefined) {
      startSession(found, keep.value);
      return;
    }
    if (!(await isOperatorToken(typed))) {
      throw new ConnectError(
        'No account has this token, and it is not the operator’s.',
        Code.Unauthenticated,
      );
    }
    startSession({ account: '', admin: typed }, keep.value);
  });
  return (
    <main class="sign-in">
      <Brand />
      <Card>
        <Form onSubmit={() => void signIn.run()}>
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
          <CheckField
            label="Stay signed in after a reload"
            help="until this tab is closed"
            {...bound(keep)}
          />
          <FaultNotice fault={signIn.fault} />
          <Button kind="primary" submit busy={signIn.busy}>
            {signIn.busy ? 'Signing in…' : 'Sign in'}
          </Button>
        </Form>
      </Card>
    </main>
  );
}
