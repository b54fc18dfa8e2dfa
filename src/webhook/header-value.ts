import { toHeaderText } from '../domain/header-rules.ts';

/** `text` in a form that a header can carry, without white space at its ends. */
export function headerValue(text: string): string {
  return toHeaderText(text.trim());
}
