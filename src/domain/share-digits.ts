import { hashText } from './hash-text.ts';

/**
 * The digits by which the jobs of a crawler are divided among processes: the last one of the rid,
 * or one of the host. By the latter a process has all jobs of a host. The two kinds have no digit
 * in common.
 */
export const DIGITS = { rid: '0123456789abcdef', host: 'ghijklmnopqrstuv' } as const;

/** By what the jobs of a crawler are divided. */
export type DigitKind = keyof typeof DIGITS;

/** The kind of some digits; undefined for none. */
export function kindOf(digits: string): DigitKind | undefined {
  if (digits === '') return undefined;
  return DIGITS.host.includes(digits.charAt(0)) ? 'host' : 'rid';
}

/** The digits that are in `digits` and not in `others`. */
export function digitsBeyond(digits: string, others: string): string[] {
  return digits.split('').filter((digit) => !others.includes(digit));
}

/** The digit of a host. */
export function hostDigit(host: string): string {
  const hash = hashText(host);
  return DIGITS.host.charAt(((hash >>> 16) ^ hash) & 15);
}
