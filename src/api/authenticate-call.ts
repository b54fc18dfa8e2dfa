import type { TokenOwner } from '../domain/account.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { Call } from './method.ts';

/**
 * Returns the caller, by the token of the request (REST paths and queries carry it), else by
 * `authorization: Bearer`. Reuses what the admission has found. Throws `unauthenticated`.
 */
export async function authenticateCall(
  authenticator: Pick<Authenticator, 'authenticate'>,
  request: { readonly token: string },
  call: Call,
): Promise<TokenOwner> {
  const token = request.token === '' ? call.bearer : request.token;
  const known = call.caller?.token === token ? call.caller : undefined;
  const owner = known?.owner ?? (await authenticator.authenticate(token, call.remote));
  call.caller = { token: token ?? '', owner };
  return call.countsAs === undefined ? owner : { ...owner, tokenType: call.countsAs };
}
