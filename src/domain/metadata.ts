import { invalidField } from './errors.ts';

const MAX_CHARACTERS = 1_024;

/**
 * Parses `metadata`: returns the JSON text in one line of ASCII, so that a header can carry it.
 * Numbers keep their digits. Undefined for an empty text. Throws `invalid` for anything that is not
 * JSON, or is longer than 1,024 characters in this form.
 */
export function parseMetadata(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  assertLength(text);
  try {
    JSON.parse(text);
  } catch {
    throw invalidField('metadata', 'metadata must be a JSON text.');
  }
  // Within strings JSON has no line breaks; elsewhere they are white space.
  const line = text.trim().replace(/[\t\r\n]+/g, ' ');
  const ascii = line.replace(/[^\x20-\x7e]/g, escaped);
  assertLength(ascii);
  return ascii;
}

/** A UTF-16 unit as JSON escapes it. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function assertLength(text: string): void {
  if (text.length <= MAX_CHARACTERS) return;
  throw invalidField(
    'metadata',
    `metadata must be at most ${MAX_CHARACTERS} characters; one beyond ASCII counts as its escape, six.`,
  );
}
