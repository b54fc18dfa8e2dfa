import { useSignal } from '@preact/signals';
import type { Account } from '../../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { useCommands } from '../../shell/commands.ts';
import { query, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { countColumn, DataTable } from '../../ui/data-table.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Empty, Loading } from '../../ui/notice.tsx';
import { ListPager } from '../../ui/pager.tsx';
import { usePages } from '../../ui/use-pages.ts';
import { AccountDialog } from './account-dialog.tsx';
import { NewAccountDialog } from './new-account-dialog.tsx';
import { RotateTokenDialog } from './rotate-token-dialog.tsx';

/** All accounts, for the operator. */
export function AccountsPage() {
  const isMaking = useSignal(false);
  const rotating = useSignal('');
  const pages = usePages('accounts', async (pageToken, pageSize, signal) => {
    const { accounts, nextPageToken } = await operatorClients().accounts.listAccounts(
      { pageSize, pageToken },
      { signal },
    );
    return { rows: accounts, nextPageToken };
  });
  // One of another page is read by itself, as a link may name it.
  const name = query.value.get('account') ?? '';
  const listed = pages.data?.rows.find((each) => each.name === name);
  const named = useFeed<Account | undefined>({
    key: `account ${name}`,
    everyMs: 60_000,
    poll: async (signal) => {
      if (name === '') return undefined;
      const call = { name };
      return (await operatorClients().accounts.getAccount(call, { signal })).account;
    },
  });
  const open = listed ?? named.data;
  const make = (): void => {
    isMaking.value = true;
  };
  useCommands([{ title: 'New account', keys: 'n', run: make }]);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Accounts</h1>
          <p>Each client of the service has one, with two tokens and its own limits.</p>
        </div>
        <Button kind="primary" opensDialog onClick={make}>
          <Icon name="add" size={16} /> New account
        </Button>
      </div>
      <Card flush>
        {pages.data === undefined ? (
          <Loading fault={pages.fault} />
        ) : pages.data.rows.length === 0 ? (
          <Empty title="No account yet" />
        ) : (
          <DataTable
            label="Accounts"
            rows={pages.data.rows}
            keyOf={({ name }) => name}
            columns={[
              {
                id: 'name',
                title: 'Name',
                whole: true,
                cell: (account) => <b>{account.name}</b>,
              },
              {
                id: 'email',
                title: 'E-mail',
                whole: true,
                cell: ({ email }) => email || <span class="muted">none</span>,
              },
              {
                id: 'pushes',
                title: 'Pushes',
                cell: ({ pushesPaused }) =>
                  pushesPaused ? (
                    <span class="badge bad">Refused</span>
                  ) : (
                    <span class="badge ok">Accepted</span>
                  ),
              },
              countColumn<Account>('Queued', ({ queued }) => queued),
              { id: 'made', title: 'Created', cell: ({ createdAt }) => <Moment at={createdAt} /> },
              {
                id: 'actions',
                title: '',
                cell: (account) => (
                  <span class="row tight">
                    <Button
                      small
                      opensDialog
                      label={`Open account ${account.name}`}
                      onClick={() => setQuery('account', account.name)}
                    >
                      Open
                    </Button>
                    <Button
                      small
                      kind="plain"
                      opensDialog
                      label={`New token for ${account.name}`}
                      onClick={() => {
                        rotating.value = account.name;
                      }}
                    >
                      New token…
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
        <ListPager pages={pages} />
      </Card>
      {isMaking.value && (
        <NewAccountDialog
          onClose={() => {
            isMaking.value = false;
            pages.refresh();
          }}
        />
      )}
      {rotating.value !== '' && (
        <RotateTokenDialog
          account={rotating.value}
          onClose={() => {
            rotating.value = '';
          }}
        />
      )}
      {name !== '' && open !== undefined && (
        <AccountDialog
          key={open.name}
          account={open}
          onClose={() => {
            setQuery('account', '');
            pages.refresh();
          }}
        />
      )}
    </>
  );
}
