import {
  type ConsoleSessions,
  createConsoleSessions,
  SESSION_PATH,
} from '../console-session/console-sessions.ts';
import { createSessionSeal } from '../console-session/sealed-session.ts';
import type { Logger } from '../domain/logger.ts';
import type { RoutesDeps } from '../edge/routes.ts';
import { requestNote } from '../http/request-note.ts';
import type { Reply } from '../rest/reply.ts';
import type { Service } from '../service/service.ts';
import type { AppContext } from './app-context.ts';
import { failedReply } from './failed-reply.ts';

type Console = NonNullable<RoutesDeps['console']>;

/** The sessions of the console, sealed by the secret that all processes of the database share. */
export function openSessions(
  { clock, publicUrl }: Pick<AppContext, 'clock' | 'publicUrl'>,
  { authenticator }: Pick<Service, 'authenticator'>,
  secret: string,
): ConsoleSessions {
  return createConsoleSessions({
    authenticator,
    seal: createSessionSeal(secret),
    clock,
    isPublicTls: () => publicUrl.current().startsWith('https:'),
  });
}

/** The console's part of the port, with its sessions. */
export function withSessions(site: Console, sessions: ConsoleSessions, logger: Logger): Console {
  async function answer(request: Parameters<Console['answer']>[0]): Promise<Reply> {
    requestNote(request).route = SESSION_PATH;
    try {
      return await sessions.answer(request);
    } catch (error) {
      return failedReply(error, request, { logger, route: SESSION_PATH });
    }
  }
  return {
    handles: site.handles,
    answer: (request, path) =>
      path === SESSION_PATH ? answer(request) : site.answer(request, path),
  };
}
