import { useSignal } from '@preact/signals';
import type { Account } from '../../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { useCommands } from '../../shell/commands.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Empty, Loading } from '../../ui/notice.tsx';
import { Pager } from '../../ui/pager.tsx';
import { usePages } from '../../ui/use-pages.ts';
import { AccountDialog } from './account-dialog.tsx';
import { NewAccountDialog } from './new-account-dialog.tsx';

/** All accounts, for the operator. */
export function AccountsPage() {
  const isMaking = useSignal(false);
  const open = useSignal<Account | undefined>(undefined);
  const pages = usePages('accounts', async (pageToken, signal) => {
    const { accounts, nextPageToken } = await operatorClients().accounts.listAccounts(
      { pageSize: 100, pageToken },
      { signal },
    );
    return { rows: accounts, nextPageToken };
  });
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
        <Button kind="primary" onClick={make}>
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
              {
                id: 'queued',
                title: 'Queued',
                number: true,
                cell: ({ queued }) => count(queued),
              },
              { id: 'made', title: 'Created', cell: ({ createdAt }) => <Moment at={createdAt} /> },
              {
                id: 'actions',
                title: '',
                cell: (account) => (
                  <Button
                    small
                    label={`Open account ${account.name}`}
                    onClick={() => {
                      open.value = account;
                    }}
                  >
                    Open
                  </Button>
                ),
              },
            ]}
          />
        )}
        <Pager pages={pages} />
      </Card>
      {isMaking.value && (
        <NewAccountDialog
          onClose={() => {
            isMaking.value = false;
            pages.refresh();
          }}
        />
      )}
      {open.value !== undefined && (
        <AccountDialog
          account={open.value}
          onClose={() => {
            open.value = undefined;
            pages.refresh();
          }}
        />
      )}
    </>
  );
}
