import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { defined } from '../domain/defined.ts';
import { invalidField } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { AccountDetails, AccountManagement } from '../service/accounts/accounts.ts';
import { asAdmin } from './audit.ts';
import { toTokenType } from './crawler-messages.ts';
import { type Method, toMethods } from './method.ts';
import { nextPageToken, toPage } from './page-token.ts';
import { limitsMessage, quotasMessage, toLimits } from './quota-messages.ts';

/**
 * The methods of the account service. Each needs the admin token and writes one audit line to the
 * log.
 */
export function accountHandlers(deps: {
  readonly accounts: AccountManagement;
  readonly limits: { readonly accountQueue: number };
  readonly logger: Logger;
}): Method[] {
  const { accounts, logger } = deps;

  const toAccountMessage = ({ account, queued, quotas }: AccountDetails) => ({
    name: account.name,
    email: account.email,
    queued: BigInt(queued),
    pushesPaused: queued > deps.limits.accountQueue,
    createdAt: timestampFromDate(account.createdAt),
    limits: limitsMessage(account.limits),
    quotas: quotas === undefined ? undefined : quotasMessage(quotas),
  });

  return toMethods(AccountService, {
    createAccount: (request, call) => {
      const { name, email, limits } = request;
      return asAdmin(logger, { method: 'CreateAccount', account: name }, call, async () => {
        const made = await accounts.create(name, email, {}, limits && toLimits(limits));
        return {
          account: toAccountMessage(made),
          normalToken: made.tokens.normal,
          javascriptToken: made.tokens.javascript,
        };
      });
    },
    listAccounts: (request, call) =>
      asAdmin(logger, { method: 'ListAccounts', account: '' }, call, async () => {
        const { limit, after } = toPage(request);
        const found = await accounts.list(limit, after);
        const rows = found.map((each) => each.account);
        return { accounts: found.map(toAccountMessage), nextPageToken: nextPageToken(rows, limit) };
      }),
    getAccount: ({ name }, call) =>
      asAdmin(logger, { method: 'GetAccount', account: name }, call, async () => ({
        account: toAccountMessage(await accounts.get(name)),
      })),
    updateAccount: (request, call) => {
      const { name, email, limits } = request;
      const patch = defined({ email, limits: limits && toLimits(limits) });
      const about = { method: 'UpdateAccount', account: name, fields: Object.keys(patch) };
      return asAdmin(logger, about, call, async () => ({
        account: toAccountMessage(await accounts.update(name, patch)),
      }));
    },
    rotateToken: (request, call) => {
      const tokenType = toTokenType(request.tokenType);
      const about = {
        method: 'RotateToken',
        account: request.name,
        fields: tokenType === undefined ? [] : [tokenType],
      };
      return asAdmin(logger, about, call, async () => {
        if (tokenType === undefined) {
          throw invalidField('token_type', 'token_type must be normal or javascript.');
        }
        return { token: await accounts.rotateToken(request.name, tokenType) };
      });
    },
    deleteAccount: ({ name }, call) =>
      asAdmin(logger, { method: 'DeleteAccount', account: name }, call, async () => {
        await accounts.remove(name);
        return {};
      }),
  });
}
