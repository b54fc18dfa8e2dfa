import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { stripVTControlCharacters, styleText } from 'node:util';
import { jsonText, plainText } from '../client/message-json.ts';

type Style = Parameters<typeof styleText>[0];

/** What a command prints: results on standard output, everything else on standard error. */
export interface Output {
  /** Whether results are JSON, one object a line. */
  readonly isJson: boolean;
  /** Whether a person sees the results as they come. */
  readonly isTerminal: boolean;
  /** Prints a result for programs. Resolves when there is room for more. */
  json(value: unknown): Promise<void>;
  /** Prints a result: `value` for programs, otherwise `text`. */
  tell(value: unknown, text: string): Promise<void>;
  /** Prints a line. Resolves when there is room for more. */
  line(text: string): Promise<void>;
  /** Writes a page as it is; on a terminal as text, without what would command the terminal. */
  bytes(bytes: Uint8Array): Promise<void>;
  /** Prints rows below a heading, in columns. */
  table(heading: readonly string[], rows: readonly (readonly string[])[]): Promise<void>;
  /** Tells the user something other than results. */
  note(text: string): void;
  /** Replaces the line of progress, where a person sees it. */
  progress(text: string): void;
  /** The text in a style, where a person sees it. */
  paint(style: Style, text: string): string;
}

/** Streams of a terminal have these. */
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** Makes the output of a command. */
export function createOutput(
  stdout: OutputStream,
  stderr: OutputStream,
  options: { readonly json: boolean },
): Output {
  const isTerminal = stdout.isTTY === true;
  const showsProgress = stderr.isTTY === true;
  let hasProgress = false;

  function clearProgress(): void {
    if (!hasProgress) return;
    stderr.write('\r\u001b[K');
    hasProgress = false;
  }

  async function write(chunk: string | Uint8Array): Promise<void> {
    if (isTerminal) clearProgress();
    // A reader that is gone, such as `head`, ends the program; see `main.ts`.
    if (!stdout.write(chunk) && !stdout.destroyed) await once(stdout, 'drain');
  }

  return {
    isJson: options.json,
    isTerminal,
    json: (value) => write(`${jsonLine(value)}\n`),
    tell: (value, text) => write(`${options.json ? jsonLine(value) : text}\n`),
    line: (text) => write(`${text}\n`),
    bytes: (bytes) => write(isTerminal ? uncommanding(bytes) : bytes),
    async table(heading, rows) {
      const all = [heading, ...rows];
      const widths = heading.map((_, at) => Math.max(...all.map((row) => width(row[at] ?? ''))));
      for (const row of all) {
        const cells = row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - width(cell)));
        await write(`${cells.join('  ').trimEnd()}\n`);
      }
    },
    note(text) {
      clearProgress();
      stderr.write(`${text}\n`);
    },
    progress(text) {
      if (!showsProgress) return;
      const columns = stderr.columns ?? 80;
      stderr.write(`\r\u001b[K${text.slice(0, columns - 1)}`);
      hasProgress = true;
    },
    paint: (style, text) => styleText(style, text, { stream: stdout }),
  };
}

function width(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Characters that command a terminal, and those that show other text in another order (U+202A to U+2069). */
const COMMANDING = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** The value as JSON, with these characters escaped. */
function jsonLine(value: unknown): string {
  return jsonText(value).replace(
    COMMANDING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A page for a terminal: these characters, but tabs and ends of lines, are shown as such. */
function uncommanding(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).replace(COMMANDING, (character) => {
    if (character === '\t' || character === '\n') return character;
    const code = character.charCodeAt(0);
    if (character === '\r') return '';
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : '\ufffd';
  });
}

/** Text of a server or a page, fit for a terminal: without characters that command it, or reorder text. */
export function printable(text: string): string {
  return text.replace(COMMANDING, ' ');
}

/** A value of a message or of `toPlain` as such a text; empty when it is absent. */
export function printableValue(value: unknown): string {
  return printable(plainText(value));
}
