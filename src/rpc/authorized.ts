import type { TokenOwner } from '../domain/account.ts';
import type { Authenticator } from '../service/authenticate.ts';
import type { Call } from './method.ts';

/**
 * Whose call it is: by the token of the request (REST paths and queries carry it), else by `authorization: Bearer`. Throws
 * `unauthenticated`.
 */
export function ownerOf(
  authenticator: Pick<Authenticator, 'authenticate'>,
  request: { readonly token: string },
  call: Call,
): Promise<TokenOwner> {
  return authenticator.authenticate(request.token === '' ? call.bearer : request.token);
}
