import { Code, ConnectError } from '@connectrpc/connect';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsOf } from '../../api/clients.ts';
import type { Session } from '../../api/session.ts';

/**
 * Whose token it is. Returns the session it makes, or undefined when no account has it, so that it
 * may be the operator's. Rejects when the service does not answer.
 */
export async function identify(token: string): Promise<Session | undefined> {
  return unlessRefused(async () => {
    const { activity } = await clientsOf(token).activity.getActivity({});
    const account = activity?.account ?? '';
    return activity?.tokenType === TokenType.JAVASCRIPT
      ? { account, javascript: token }
      : { account, normal: token };
  });
}

/** Whether it is the operator's token. Rejects when the service does not answer. */
export async function isOperatorToken(token: string): Promise<boolean> {
  const list = () => clientsOf(token).accounts.listAccounts({ pageSize: 1 });
  return (await unlessRefused(list)) !== undefined;
}

async function unlessRefused<Reply>(call: () => Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await call();
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) return undefined;
    throw error;
  }
}
