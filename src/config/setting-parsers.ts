/** A setting of the operator, which is written as text. */
export interface ConfigText {
  readonly variable: string;
  /** Used when the variable is absent or empty. */
  readonly fallback: string;
  /** One sentence for the operator. */
  readonly meaning: string;
  /** Returns the value. Throws an Error that says what is allowed. */
  readonly parse: (text: string) => unknown;
}

/** Any text. */
export const text = (value: string): string => value;

/** A whole number within bounds. */
export function integer(min: number, max: number) {
  return (value: string): number => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= min && number <= max)) {
      throw new Error(`must be a whole number from ${min} to ${max}, not "${value}"`);
    }
    return number;
  };
}

/** One of some words. */
export function choice<const Word extends string>(...words: readonly Word[]) {
  return (value: string): Word => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new Error(`must be one of ${words.join(', ')}, not "${value}"`);
    return found;
  };
}

/** A text that begins with one of these schemes, or nothing. */
export function uri(...schemes: readonly string[]) {
  return (value: string): string => {
    if (value === '') return '';
    if (!schemes.some((scheme) => value.startsWith(`${scheme}://`))) {
      throw new Error(
        `must be a URL that begins with ${schemes.map((s) => `${s}://`).join(' or ')}`,
      );
    }
    return value;
  };
}

/** A URL of these schemes that has a host, or nothing. It may hold a password: errors do not show it. */
export function url(...schemes: readonly string[]) {
  const parse = uri(...schemes);
  return (value: string): string => {
    if (parse(value) === '' || (URL.parse(value)?.hostname ?? '') !== '') return value;
    throw new Error(`must be a URL with a host, such as ${schemes[0]}://HOST or with :PORT`);
  };
}

/** A URL to which paths are appended, or nothing. */
export function baseUrl(value: string): string {
  if (/[?#]/.test(url('http', 'https')(value))) {
    throw new Error('must be a URL without ? and #, as paths are appended to it');
  }
  return value;
}

/** One e-mail address, with a name before it or without, or nothing. */
export function mailAddress(value: string): string {
  const address = /<([^<>]*)>$/.exec(value.trim())?.[1] ?? value.trim();
  if (value !== '' && !/^[^\s@<>,;]+@[^\s@<>,;]+$/.test(address)) {
    throw new Error(`must be one e-mail address, not "${value}"`);
  }
  return value;
}

/** Words that can begin a User-Agent. */
export function productName(value: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$/.test(value)) return value;
  throw new Error('must be 1 to 60 letters, digits, spaces or any of . _ -');
}

/** A token that is not easily guessed, or nothing. */
export function token(value: string): string {
  if (value === '') return value;
  if (!/^[A-Za-z0-9_~.-]{16,128}$/.test(value)) {
    throw new Error('must be 16 to 128 letters, digits or any of _ ~ . -');
  }
  if (new Set(value).size < 6)
    throw new Error('is too easily guessed: use 6 different characters or more');
  return value;
}

/** Tokens that are not easily guessed, separated by commas, or nothing. */
export function tokens(value: string): readonly string[] {
  if (value === '') return [];
  return value.split(',').map((each, index) => {
    // The text of the entry is secret.
    const place = `entry ${index + 1}`;
    if (each.trim() === '') throw new Error(`${place} is empty: separate keys by one comma`);
    try {
      return token(each.trim());
    } catch (cause) {
      throw new Error(`${place} ${(cause as Error).message}`, { cause });
    }
  });
}
