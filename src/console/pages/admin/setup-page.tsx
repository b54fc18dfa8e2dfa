import { useSignal } from '@preact/signals';
import {
  type GetSetupResponse,
  type SetupItem,
  SetupState,
} from '../../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { FaultNotice, Loading } from '../../ui/notice.tsx';

const STATES: Readonly<Record<SetupState, readonly [kind: string, text: string]>> = {
  [SetupState.UNSPECIFIED]: ['', 'Not known'],
  [SetupState.OK]: ['ok', 'Works'],
  [SetupState.MISSING]: ['warn', 'Not set up'],
  [SetupState.FAILED]: ['bad', 'Does not work'],
  [SetupState.UNCHECKED]: ['', 'Set up, not tried'],
};

/** What is set up, what is not yet, and what to do about it. */
export function SetupPage() {
  const checked = useSignal<GetSetupResponse | undefined>(undefined);
  const found = useFeed({
    key: 'setup',
    everyMs: 30_000,
    poll: (signal) => operatorClients().operator.getSetup({}, { signal }),
  });
  const check = useAction(async () => {
    checked.value = await operatorClients().operator.getSetup({ check: true });
  });
  const data = checked.value ?? found.data;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Setup</h1>
          <p>
            What the service can use, and how to give it what it lacks. What needs you is first.
          </p>
        </div>
        <Button busy={check.busy} onClick={() => void check.run()}>
          {check.busy ? 'Trying…' : 'Try mail and browser'}
        </Button>
      </div>
      <FaultNotice fault={check.fault} />
      {data === undefined ? (
        <Loading fault={found.fault} />
      ) : (
        data.items.map((item) => <Item key={item.name} item={item} />)
      )}
    </>
  );
}

function Item({ item }: { readonly item: SetupItem }) {
  const [kind, text] = STATES[item.state] ?? ['', ''];
  const name = item.name
    .replaceAll('_', ' ')
    .replace(/\b(url|tls)\b/, (word) => word.toUpperCase());
  return (
    <Card
      title={name.charAt(0).toUpperCase() + name.slice(1)}
      actions={<span class={`badge ${kind}`}>{text}</span>}
    >
      <div class="stack tight">
        <p>{plain(item.finding)}</p>
        {item.advice !== '' && <p class="muted">{plain(item.advice)}</p>}
        {item.settings.length > 0 && (
          <p class="row tight">
            {item.settings.map((setting) => (
              <code class="badge bare" key={setting}>
                {setting}
              </code>
            ))}
          </p>
        )}
      </div>
    </Card>
  );
}

/** Without the marks that documents have around code. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}
