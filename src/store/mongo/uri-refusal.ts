import { DomainError } from '../../domain/errors.ts';

/**
 * Says why the database, the driver or the system refused a connection string. Its name may have no
 * address, or a file of its TLS options cannot be used. Returns undefined for refusals that name what
 * to do by themselves, and for a fault of the service, which keeps its stack.
 */
export function uriRefusal(error: unknown): string | undefined {
  if (!(error instanceof Error) || !isOfDatabase(error)) return undefined;
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`;
}

function isOfDatabase(error: Error): boolean {
  if (error instanceof DomainError) return error.kind !== 'failed_precondition';
  return error.name.startsWith('Mongo') || error instanceof URIError || 'syscall' in error;
}
