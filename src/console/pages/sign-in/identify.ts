import { Code, ConnectError } from '@connectrpc/connect';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsOf } from '../../api/clients.ts';
import type { Session } from '../../api/session.ts';

/**
 * Whose token it is. Returns the session it makes, or undefined when no account has it, so that it
 * may be the operator's. Rejects when the service does not answer.
 */
export async function identify(token: string): Promise<Session | undefined> {
  try {
    const { activity } = await clientsOf(token).activity.getActivity({});
    const account = activity?.account ?? '';
    return activity?.tokenType === TokenType.JAVASCRIPT
      ? { account, javascript: token }
      : { account, normal: token };
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) return undefined;
    throw error;
  }
}
