import { audited, logRefusal } from '../api/audit.ts';
import type { Backups } from '../backup/backups.ts';
import { DomainError } from '../domain/errors.ts';
import { parseBearer } from '../domain/header-rules.ts';
import { type AdjustableLogger, LOG_LEVELS } from '../domain/logger.ts';
import type { RoutesDeps } from '../edge/routes.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { GatewayError } from '../rest/gateway-error.ts';
import { jsonReply, type Reply } from '../rest/reply.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import { isSameToken } from '../service/accounts/tokens.ts';
import type { AppContext } from './app-context.ts';
import { answerBackup } from './backup-operation.ts';
import { failedReply } from './failed-reply.ts';

/**
 * Answers what an operator asks of this one process: `/metrics`, and with the admin token
 * `/log-level` and `/backup`.
 */
export function createOperations(
  { config, logger, metrics }: Pick<AppContext, 'config' | 'logger' | 'metrics'>,
  authenticator: Pick<Authenticator, 'authenticateAdmin'>,
  backups: Backups | undefined,
): Pick<RoutesDeps, 'metrics' | 'logLevel' | 'backup'> {
  function assertAdmin(request: AnyRequest): void {
    authenticator.authenticateAdmin(bearerOf(request), requestNote(request).remote);
  }

  /** Works with the admin token alone, and logs a line as the admin calls of the API have: a backup has every secret. */
  async function asAdmin(
    request: AnyRequest,
    route: string,
    work: () => Promise<Reply> | Reply,
  ): Promise<Reply> {
    const { remote, protocol } = requestNote(request);
    const requestId = String(request.headers['x-request-id']);
    const [method, caller] = [`${request.method} ${route}`, { remote, protocol, requestId }];
    try {
      assertAdmin(request);
    } catch (error) {
      logRefusal(logger, method, caller, error);
      throw error;
    }
    return audited(logger, { method, account: '' }, caller, async () => work());
  }

  function assertMayMeasure(request: AnyRequest): void {
    const { metricsToken } = config;
    if (metricsToken === '' || isSameToken(bearerOf(request) ?? '', metricsToken)) return;
    assertAdmin(request);
  }

  /** Replies to errors as the API does. */
  async function answer(make: () => Promise<Reply>, request: AnyRequest): Promise<Reply> {
    try {
      return await make();
    } catch (error) {
      return failedReply(error, request, { logger, route: 'operations' });
    }
  }

  return {
    metrics: (request) =>
      answer(async () => {
        assertMayMeasure(request);
        const { text, contentType } = await metrics.read();
        return { status: 200, headers: { 'content-type': contentType }, body: text };
      }, request),
    backup: (request) =>
      answer(
        () => asAdmin(request, '/backup', () => answerBackup(backups, request, logger)),
        request,
      ),
    logLevel: (request) =>
      answer(() => asAdmin(request, '/log-level', () => setLogLevel(logger, request)), request),
  };
}

function bearerOf(request: AnyRequest): string | undefined {
  return parseBearer(request.headers.authorization);
}

/** `PUT /log-level/LEVEL` sets the level; `GET /log-level` shows it. */
function setLogLevel(logger: AdjustableLogger, { method, url = '' }: AnyRequest): Reply {
  const named = /^\/log-level\/(\w*)/.exec(url)?.[1];
  if (method === 'PUT' && named !== undefined) {
    const level = LOG_LEVELS.find((each) => each === named);
    if (level === undefined) {
      const message = `The level must be one of ${LOG_LEVELS.join(', ')}.`;
      throw new DomainError('invalid', 'invalid_level', message, { field: 'level' });
    }
    const before = logger.level;
    // Told whatever both levels keep, so that nobody silences the log unseen.
    logger.level = 'warn';
    if (level !== before) logger.warn({ level, before }, 'the log level was changed');
    logger.level = level;
  } else if (method !== 'GET' || named !== undefined) {
    const how = 'GET /log-level shows the level, PUT /log-level/LEVEL sets it.';
    throw new GatewayError(405, 'method_not_allowed', how, { headers: { allow: 'GET, PUT' } });
  }
  return jsonReply(JSON.stringify({ level: logger.level }));
}
