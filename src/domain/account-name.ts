import { invalidField } from './errors.ts';

/**
 * Parses the name of an account. Throws `invalid` naming `name` unless it is 1 to 64 of `A-Z a-z
 * 0-9 _ . -` and starts with a letter or digit.
 */
export function parseAccountName(text: string): string {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(text)) {
    throw invalidField(
      'name',
      'name must be 1 to 64 letters, digits or any of _ . - and begin with a letter or digit.',
    );
  }
  return text;
}
