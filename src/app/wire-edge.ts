import { createAdmission } from '../api/admission.ts';
import { withAudit } from '../api/audit.ts';
import { toConnectError } from '../api/errors.ts';
import { createMethods } from '../api/methods.ts';
import type { OperatorParts } from '../api/operator-handlers.ts';
import type { Backups } from '../backup/backups.ts';
import { VERSION } from '../config/version.ts';
import { createConsoleSite } from '../console-assets/console-site.ts';
import type { ConsoleSessions } from '../console-session/console-sessions.ts';
import { oneAtATime } from '../domain/one-at-a-time.ts';
import { createEdge, type Edge } from '../edge/edge.ts';
import { databaseAnswers } from '../observability/database-answers.ts';
import { compatAdapters } from '../rest/compat/compat-adapters.ts';
import { screenshotAdapters } from '../rest/compat/screenshots.ts';
import { createGateway } from '../rest/gateway.ts';
import { createConnectMount } from '../rpc/connect-mount.ts';
import type { Service } from '../service/service.ts';
import type { Store } from '../store/store.ts';
import type { AppContext } from './app-context.ts';
import { withSessions } from './console-endpoint.ts';
import { createMcpEndpoint } from './mcp-endpoint.ts';
import { createOperations } from './operator-paths.ts';
import type { TlsFiles } from './setting-files.ts';
import { pushLimits } from './wire-service.ts';

/** Longest message of RPC that is written. */
const WRITE_MAX_BYTES = 256 * 1024 * 1024;

/** What the port is wired to. */
export interface EdgeParts {
  readonly service: Service;
  readonly store: Store;
  readonly operator: OperatorParts;
  readonly backups: Backups | undefined;
  readonly sessions: ConsoleSessions;
  /** If present, the port speaks TLS. */
  readonly tlsFiles: TlsFiles | undefined;
}

/** Wires the one port to the use cases; a worker answers health and metrics only. */
export function wireEdge(
  context: AppContext,
  { service, store, operator, backups, sessions, tlsFiles }: EdgeParts,
): Edge {
  const { config, logger, clock, pools, publicUrl } = context;
  const isReady = oneAtATime(() => databaseAnswers(() => store.ping()));
  const admission = withAudit(createAdmission(service.authenticator), logger);
  const table = createMethods({
    service,
    limits: pushLimits(config),
    publicUrl: publicUrl.current,
    isReady,
    admission,
    operator,
    slots: pools.calls,
    clock,
    logger,
  });
  const isWorker = config.role === 'worker';
  const shared = {
    methods: isWorker ? table.health : table.methods,
    admission,
    pools: pools.rooms,
  };
  const adapters = isWorker
    ? []
    : [compatAdapters(publicUrl.current), screenshotAdapters(store.screenshots, clock)];
  const rpc = createConnectMount({ ...shared, writeMaxBytes: WRITE_MAX_BYTES, logger });
  const mcp = createMcpEndpoint({
    mcp: isWorker ? 'off' : config.mcp,
    authenticator: service.authenticator,
    rpc,
    pools: pools.rooms,
    logger,
  });
  return createEdge({
    rpc,
    ...(mcp === undefined ? {} : { mcp }),
    rest: createGateway({
      ...shared,
      adapters,
      toError: (error, place) => toConnectError(error, logger, place),
    }),
    isReady,
    ...(isWorker
      ? {}
      : {
          authorize: sessions.authorize,
          console: withSessions(createConsoleSite(VERSION), sessions, logger),
        }),
    ...createOperations(context, service.authenticator, backups),
    ...(tlsFiles === undefined ? {} : { tls: { ...tlsFiles, preferred: config.tlsPreferred } }),
    knowsToken: (token) => service.authenticator.knows(token),
    trustedProxies: config.trustedProxies,
    logger,
    logged: config.logRequests,
    version: VERSION,
    tracing: context.tracing,
  });
}
