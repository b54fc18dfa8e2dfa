import type { Message } from '@bufbuild/protobuf';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { Call, Method } from './method.ts';

/**
 * Wraps methods so that a call of one that `counts` counts towards its account's quota, and rejects
 * with `exhausted` beyond it. The token must have been checked.
 */
export function withRequestQuota(
  methods: readonly Method[],
  counts: (method: Method) => boolean,
  quotas: Pick<Quotas, 'takeRequest'>,
): Method[] {
  return methods.map((method): Method => {
    if (method.kind !== 'unary' || !counts(method)) return method;
    return {
      ...method,
      async handle(request: Message, call: Call) {
        // Calls of the operator, and calls without a known caller, have no account.
        if (call.caller !== undefined) quotas.takeRequest(call.caller.owner.account);
        return method.handle(request, call);
      },
    };
  });
}
