import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { invalidField } from '../domain/errors.ts';
import type { AccountDetails, AccountManagement } from '../service/accounts.ts';
import type { Authenticator } from '../service/authenticate.ts';
import { tokenTypeFrom } from './crawler-messages.ts';
import { type Call, type Method, methodsOf } from './method.ts';
import { nextPageToken, pageFrom } from './page-token.ts';

/** The methods of the account service; each needs the admin token. */
export function accountHandlers(deps: {
  readonly authenticator: Authenticator;
  readonly accounts: AccountManagement;
  readonly accountQueueLimit: number;
}): Method[] {
  const { authenticator, accounts } = deps;
  const admin = (call: Call): void => authenticator.authenticateAdmin(call.bearer);
  const messageOf = ({ account, queued }: AccountDetails) => ({
    name: account.name,
    email: account.email,
    queued: BigInt(queued),
    pushesPaused: queued > deps.accountQueueLimit,
    createdAt: timestampFromDate(account.createdAt),
  });

  return methodsOf(AccountService, {
    async createAccount(request, call) {
      admin(call);
      const made = await accounts.create(request.name, request.email);
      return {
        account: messageOf(made),
        normalToken: made.tokens.normal,
        javascriptToken: made.tokens.javascript,
      };
    },
    async listAccounts(request, call) {
      admin(call);
      const { limit, after } = pageFrom(request);
      const found = await accounts.list(limit, after);
      const rows = found.map((each) => each.account);
      return { accounts: found.map(messageOf), nextPageToken: nextPageToken(rows, limit) };
    },
    async getAccount(request, call) {
      admin(call);
      return { account: messageOf(await accounts.get(request.name)) };
    },
    async updateAccount(request, call) {
      admin(call);
      const { name, email } = request;
      const details = email === undefined ? accounts.get(name) : accounts.setEmail(name, email);
      return { account: messageOf(await details) };
    },
    async rotateToken(request, call) {
      admin(call);
      const tokenType = tokenTypeFrom(request.tokenType);
      if (tokenType === undefined) {
        throw invalidField('token_type', 'token_type must be normal or javascript.');
      }
      return { token: await accounts.rotateToken(request.name, tokenType) };
    },
    async deleteAccount(request, call) {
      admin(call);
      await accounts.remove(request.name);
      return {};
    },
  });
}
