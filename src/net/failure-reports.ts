import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressRefusal } from './address-guard.ts';
import type { HttpError } from './http-client.ts';
import { errorCode } from './http-failures.ts';

/** A connection that the guard refused. */
export interface RefusedConnection {
  readonly hostname: string;
  readonly port: number;
  readonly refusal: AddressRefusal;
  readonly claimant: Claimant | undefined;
}

/** What is told of connections that the operator can do something about. */
export interface FailureReports {
  /** Called with every connection that was refused because of its target. */
  readonly onRefused?: ((refused: RefusedConnection) => void) | undefined;
  /** Called with the code of the system when a connection failed with `no_socket`. */
  readonly onNoSocket?: ((code: string) => void) | undefined;
}

/** Reports why the connection to `target` failed, if that is one of the failures that are told. */
export function reportFailure(
  { onRefused, onNoSocket }: FailureReports,
  failure: HttpError,
  target: Omit<RefusedConnection, 'refusal'>,
): void {
  const { code } = failure;
  if (code === 'no_socket') onNoSocket?.(errorCode(failure.cause));
  if (code === 'address_not_allowed' || code === 'port_not_allowed') {
    onRefused?.({ ...target, refusal: code });
  }
}
