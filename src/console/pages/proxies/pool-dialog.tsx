import { useSignal } from '@preact/signals';
import type { ProxyPool } from '../../../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { accountClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';

/** Makes a pool, or changes `pool`, whose URLs are not shown. */
export function PoolDialog(props: {
  readonly pool: ProxyPool | undefined;
  readonly onClose: () => void;
}) {
  const { pool, onClose } = props;
  const name = useSignal('');
  const list = useSignal('');
  const gateway = useSignal('');
  const sessions = useSignal('');
  const countries = useSignal(pool?.countries.join(', ') ?? '');
  const save = useAction(async () => {
    const input = {
      name: pool?.name ?? name.value,
      proxies: list.value.split(/\s+/).filter((line) => line !== ''),
      gateway: gateway.value.trim(),
      countries: countries.value,
      ...(sessions.value === '' ? {} : { sessions: Number(sessions.value) }),
    };
    const { proxies } = accountClients();
    await (pool === undefined ? proxies.createProxyPool(input) : proxies.updateProxyPool(input));
    toast(`${input.name} is saved.`);
    onClose();
  });
  const isKept = pool !== undefined;
  return (
    <Dialog title={isKept ? `Change the pool ${pool.name}` : 'New pool'} onClose={onClose}>
      <Form onSubmit={() => void save.run()}>
        {!isKept && (
          <TextField
            label="Name"
            name="name"
            fault={save.fault}
            {...bound(name)}
            help="Lower-case letters, digits, - and _, beginning with a letter."
            required
            autofocus
            mono
          />
        )}
        <TextField
          label="Proxies"
          name="proxies"
          fault={save.fault}
          {...bound(list)}
          lines
          mono
          placeholder="http://user:password@proxy.example:3128"
          help={`One http, https or socks5 URL a line. They are never shown again.${isKept ? ' Empty: they stay as they are.' : ''}`}
        />
        <TextField
          label="Or a gateway"
          name="gateway"
          fault={save.fault}
          {...bound(gateway)}
          mono
          placeholder="http://user-{session}:password@gate.example:8000"
          help="One proxy that leads out by another address for each session."
        />
        <TextField
          label="Sessions of the gateway"
          name="sessions"
          fault={save.fault}
          {...bound(sessions)}
          type="number"
          min={1}
          help="100 if empty."
        />
        <TextField
          label="Countries"
          name="countries"
          fault={save.fault}
          {...bound(countries)}
          help="ISO codes that sites see, separated by commas."
        />
        <FaultNotice fault={save.fault} />
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" submit busy={save.busy}>
            Save
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
