import type { DomainError } from '../domain/errors.ts';

const refusals = new WeakMap<object, DomainError>();

/** Notes why an element of a list could not be read; `message` stands in its place. */
export function noteUnreadable(message: object, refusal: DomainError): void {
  refusals.set(message, refusal);
}

/** Why the message could not be read; undefined if it was. */
export function refusalOf(message: object): DomainError | undefined {
  return refusals.get(message);
}
