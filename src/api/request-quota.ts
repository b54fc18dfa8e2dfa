import type { Message } from '@bufbuild/protobuf';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { Call, Method } from './method.ts';

/**
 * Wraps methods so that a call counts towards its account's quota, and rejects with `exhausted` beyond
 * it. The token must have been checked. Pushes have their own rate. Inline crawls belong to the same
 * service; their use case counts them.
 */
export function withRequestQuota(
  methods: readonly Method[],
  quotas: Pick<Quotas, 'takeRequest'>,
): Method[] {
  return methods.map((method): Method => {
    if (method.kind !== 'unary' || method.desc.parent === PushService) return method;
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
