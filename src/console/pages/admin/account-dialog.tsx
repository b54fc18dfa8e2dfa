import { useSignal } from '@preact/signals';
import type { Account } from '../../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { bytes, count } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { RotateTokenDialog } from './rotate-token-dialog.tsx';

/** The limits an account may have of its own: name in the API, label, how its use is shown, and the unit in which it is typed. */
const LIMITS = [
  ['crawlers', 'Crawlers', count, 1],
  ['concurrency', 'Concurrency of all crawlers', count, 1],
  ['storageBytes', 'Stored results and deliveries, GiB', bytes, 1024 ** 3],
  ['queueBytes', 'Bytes in queues, MiB', bytes, 1024 ** 2],
  ['requestsPerSecond', 'Calls a second', count, 1],
  ['probesPerMinute', 'Probes a minute', count, 1],
  ['replaysPerHour', 'Replays an hour', count, 1],
] as const;

/** The largest number below 2^63 that a number field can have. */
const MAX_LIMIT = 2 ** 63 - 1_024;

type LimitDraft = Readonly<Partial<Record<(typeof LIMITS)[number][0], string>>>;

/** Changes an account, its limits and its tokens, or removes it. */
export function AccountDialog(props: { readonly account: Account; readonly onClose: () => void }) {
  const { account, onClose } = props;
  const { accounts } = operatorClients();
  const email = useSignal(account.email);
  const draft = useSignal<LimitDraft>(limitDraft(account));
  const isRotating = useSignal(false);
  const isDeleting = useSignal(false);
  const details = useFeed({
    key: `account ${account.name}`,
    poll: (signal) => accounts.getAccount({ name: account.name }, { signal }),
  });
  const quotas = details.data?.account?.quotas;
  const save = useAction(async () => {
    const limits = Object.fromEntries(
      LIMITS.flatMap(([name, , , unit]) => {
        const text = draft.value[name] ?? '';
        return text === '' ? [] : [[name, BigInt(Math.round(Number(text) * unit))] as const];
      }),
    );
    await accounts.updateAccount({ name: account.name, email: email.value, limits });
    toast(`Saved account ${account.name}.`);
    onClose();
  });
  if (isRotating.value) return <RotateTokenDialog account={account.name} onClose={onClose} />;
  if (isDeleting.value) {
    return (
      <ConfirmByName
        title={`Delete account ${account.name}`}
        name={account.name}
        verb="Delete"
        onClose={onClose}
        perform={async () => {
          await accounts.deleteAccount({ name: account.name });
          toast(`Deleted account ${account.name}.`);
          onClose();
        }}
      >
        <p>Its stored results go with it. An account that has crawlers cannot be deleted.</p>
      </ConfirmByName>
    );
  }
  return (
    <Dialog title={`Account ${account.name}`} wide onClose={onClose}>
      <Form onSubmit={() => void save.run()}>
        <TextField
          label="E-mail"
          name="email"
          type="email"
          fault={save.fault}
          {...bound(email)}
          help="Told of paused crawlers and a full queue; empty for nobody."
        />
        <div class="fields">
          {LIMITS.map(([name, label, show, unit]) => (
            <TextField
              key={name}
              label={label}
              type="number"
              min={0}
              max={MAX_LIMIT / unit}
              step={unit === 1 ? 1 : 'any'}
              value={draft.value[name] ?? ''}
              onInput={(value) => {
                draft.value = { ...draft.value, [name]: value };
              }}
              placeholder={typedLimit(quotas?.[name]?.limit, unit)}
              help={
                quotas?.[name]?.used === undefined
                  ? 'Empty: the default of the operator. 0: no limit.'
                  : `${show(quotas[name]?.used ?? 0n)} in use. Empty: the default of the operator. 0: no limit.`
              }
            />
          ))}
        </div>
        <FaultNotice fault={save.fault} />
        <div class="row spread">
          <div class="row">
            <Button
              opensDialog
              onClick={() => {
                isRotating.value = true;
              }}
            >
              New token…
            </Button>
            <Button
              kind="danger"
              opensDialog
              onClick={() => {
                isDeleting.value = true;
              }}
            >
              Delete…
            </Button>
          </div>
          <Button kind="primary" submit busy={save.busy}>
            Save
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

function limitDraft({ limits }: Account): LimitDraft {
  return Object.fromEntries(
    LIMITS.flatMap(([name, , , unit]) =>
      limits?.[name] === undefined ? [] : [[name, typedLimit(limits[name], unit)] as const],
    ),
  );
}

function typedLimit(limit: bigint | undefined, unit: number): string {
  return limit === undefined ? '' : String(Number(limit) / unit);
}
