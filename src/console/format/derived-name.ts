const MAX_NAME = 64;

/** A name that a crawler or an account may have, of another text; empty when nothing is left of it. */
export function derivedName(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, MAX_NAME);
}
