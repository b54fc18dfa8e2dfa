import { useSignal } from '@preact/signals';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { bound } from '../../ui/form.tsx';
import { Segments } from '../../ui/segments.tsx';
import { ShownOnce } from '../../ui/shown-once.tsx';

const TYPES = { normal: TokenType.NORMAL, javascript: TokenType.JAVASCRIPT } as const;

/** Replaces a token of an account, once its name is typed, and shows the new one once. */
export function RotateTokenDialog(props: {
  readonly account: string;
  readonly onClose: () => void;
}) {
  const { account, onClose } = props;
  const type = useSignal<keyof typeof TYPES>('normal');
  const token = useSignal('');
  if (token.value !== '') {
    return (
      <ShownOnce
        title={`New token of ${account}`}
        secrets={[['New token', token.value]]}
        onSaved={onClose}
      >
        <p>Hand it over now: it is shown this once.</p>
      </ShownOnce>
    );
  }
  return (
    <ConfirmByName
      title={`New token for ${account}`}
      name={account}
      verb="Replace"
      onClose={onClose}
      perform={async () => {
        const call = { name: account, tokenType: TYPES[type.value] };
        token.value = (await operatorClients().accounts.rotateToken(call)).token;
      }}
    >
      <Segments
        label="Token type"
        value={type.value}
        options={[
          ['normal', 'Normal'],
          ['javascript', 'JavaScript'],
        ]}
        onPick={bound(type).onInput}
      />
      <p>The token that it has now is refused at once: programs that use it are cut off.</p>
    </ConfirmByName>
  );
}
