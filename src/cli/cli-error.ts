import { codeOf } from '../client/call-failure.ts';
import { describeFailure } from '../client/client.ts';
import { defined } from '../domain/defined.ts';
import { DomainError } from '../domain/errors.ts';
import { fileFailure, fileFailureText } from '../domain/file-failure.ts';
import { EXIT_CODE, type ExitCode } from './exit-code.ts';
import { printable } from './output.ts';

/** A failure whose text is for the user, and the exit code that it ends with. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = EXIT_CODE.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A value that does not fit its field. */
export class FieldError extends CliError {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message, EXIT_CODE.usage);
    this.field = field;
  }
}

/** A value that cannot be accepted. */
export function usageError(message: string): CliError {
  return new CliError(message, EXIT_CODE.usage);
}

/** A file that was named and cannot be read. */
export function unreadable(path: string, cause: unknown): CliError {
  return usageError(fileFailureText(cause, path));
}

/** Exit codes of gRPC's codes; others are `failed`. */
const exitCodes: Readonly<Record<string, ExitCode>> = {
  invalid_argument: EXIT_CODE.usage,
  unauthenticated: EXIT_CODE.denied,
  permission_denied: EXIT_CODE.denied,
  not_found: EXIT_CODE.notFound,
  resource_exhausted: EXIT_CODE.refused,
  failed_precondition: EXIT_CODE.refused,
  already_exists: EXIT_CODE.refused,
  unavailable: EXIT_CODE.unavailable,
  deadline_exceeded: EXIT_CODE.unavailable,
};

/** Exit codes of backups and restores, which do not use the client. */
const kindExitCodes: Readonly<Record<DomainError['kind'], ExitCode>> = {
  invalid: EXIT_CODE.usage,
  unauthenticated: EXIT_CODE.denied,
  forbidden: EXIT_CODE.denied,
  not_found: EXIT_CODE.notFound,
  conflict: EXIT_CODE.refused,
  failed_precondition: EXIT_CODE.refused,
  exhausted: EXIT_CODE.refused,
  unavailable: EXIT_CODE.unavailable,
  internal: EXIT_CODE.failed,
};

/** What a failed command tells: for a person, or as an object for programs. */
export interface ToldFailure {
  readonly exitCode: ExitCode;
  readonly message: string;
  readonly reason?: string;
  readonly field?: string;
}

/** Reads whatever a command has thrown. */
export function tellFailure(error: unknown, url: string): ToldFailure {
  if (error instanceof CliError) return { exitCode: error.exitCode, message: error.message };
  if (!(error instanceof Error)) return { exitCode: EXIT_CODE.failed, message: String(error) };
  if (error instanceof DomainError) {
    const { kind, reason, message } = error;
    return { exitCode: kindExitCodes[kind], message, reason };
  }
  const ofFile = fileFailure(error);
  if (ofFile !== undefined) {
    const exitCode = ofFile.isWrongPath ? EXIT_CODE.usage : EXIT_CODE.failed;
    return { exitCode, message: ofFile.message };
  }
  if (error.name !== 'ConnectError') {
    return { exitCode: EXIT_CODE.failed, message: error.message };
  }
  // The service, or what answers in its place, has written these texts.
  const { code, ...told } = describeFailure(error);
  const message = printable(told.message);
  const reason = told.reason === undefined ? undefined : printable(told.reason);
  const { field } = told;
  if (reason === undefined) {
    const other = otherProgram(error, code, message);
    const text =
      other !== undefined
        ? `what answers at ${url} is not a service of this program: ${other}`
        : isUnreachable(error, code)
          ? `the service at ${url} cannot be reached: ${WITHOUT_TLS.test(message) ? WITHOUT_TLS_TEXT : message}`
          : undefined;
    if (text !== undefined) return { exitCode: EXIT_CODE.unavailable, message: text };
  }
  return {
    exitCode: exitCodes[code] ?? EXIT_CODE.failed,
    message,
    ...defined({ reason, field }),
  };
}

/** What shows that another program has answered; undefined when nothing does. */
function otherProgram({ cause }: Error, code: string, message: string): string | undefined {
  const causeCode = codeOf(cause);
  if (causeCode === 'ERR_HTTP2_ERROR') return 'it speaks no HTTP/2 (some proxies need --http1)';
  if (causeCode.startsWith('HPE_')) return 'it speaks no HTTP/1.1';
  // The service gives a reason, and proxies answer with 429 and 502 to 504, which are `unavailable`.
  const isForeign = /^(unsupported content type|HTTP \d)/.test(message) && code !== 'unavailable';
  return isForeign ? message : undefined;
}

/** What OpenSSL says of an answer that is no TLS. */
const WITHOUT_TLS = /wrong version number/;
const WITHOUT_TLS_TEXT = 'it answers without TLS; try http:// in its address';

function isUnreachable({ cause }: Error, code: string): boolean {
  // Nobody canceled the call: its connection was closed.
  if (code === 'canceled') return true;
  return /^(E[A-Z]+|ERR_HTTP2_|ERR_SSL|ERR_TLS|CERT_|DEPTH_|UNABLE_|SELF_)/.test(codeOf(cause));
}
