import { isAscii } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Steps } from '../../domain/in-turns.ts';

// `chardetng` guesses the character sets of pages in Firefox. Its guesses decode a page as those of Chromium's
// `compact_enc_det` do in 19 of 20 cases, and more often as the page was meant. The package's own program imports
// WebAssembly as a module, which Node calls experimental.

/** What the module exports, for the functions that wasm-bindgen generates. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly __wbindgen_malloc: (bytes: number) => number;
  readonly __wbindgen_free: (at: number, bytes: number) => void;
  readonly __wbindgen_add_to_stack_pointer: (bytes: number) => number;
  readonly encodingdetector_new: () => number;
  readonly __wbg_encodingdetector_free: (detector: number) => void;
  /** Frees the bytes. */
  readonly encodingdetector_feed: (
    detector: number,
    at: number,
    bytes: number,
    isLast: number,
  ) => number;
  /** Frees the domain; writes place and length of the name to `result`. */
  readonly encodingdetector_guess: (
    result: number,
    detector: number,
    domainAt: number,
    domainBytes: number,
    allowsUtf8: number,
  ) => void;
}

/** Bytes that are looked at, from the first that is not ASCII: a screenful of text. */
const SAMPLE_BYTES = 16 * 1_024;
/** A step of this length takes well under a millisecond. */
const STEP_BYTES = 2 * 1_024;
/** Bytes that are searched in one step for the first that is not ASCII. */
const SEARCHED_BYTES = 64 * 1_024;

let loaded: Exports | undefined;

/** In UTF-8 that is broken in places there are more whole characters than this for each broken one. */
const WHOLE_FOR_EACH_BROKEN = 20;

/**
 * Guesses the character set of a text that names none and is not valid UTF-8, from its bytes and the
 * domain that sent it, in steps. Returns a name of the WHATWG Encoding Standard. UTF-8 with a few
 * broken characters is still UTF-8, unlike in browsers: a body that is cut short often ends within one.
 */
export function* guessCharset(bytes: Uint8Array, hostname: string | undefined): Steps<string> {
  const sample = yield* sampleOf(bytes);
  if (isNearlyUtf8(sample)) return 'utf-8';
  const wasm = (loaded ??= load());
  const detector = wasm.encodingdetector_new();
  try {
    for (let at = 0; at < sample.byteLength; at += STEP_BYTES) {
      if (at > 0) yield;
      const piece = sample.subarray(at, at + STEP_BYTES);
      // A sample may end within a character, so no piece is the last.
      wasm.encodingdetector_feed(detector, copyIn(wasm, piece), piece.byteLength, 0);
    }
    return readGuess(wasm, detector, topLevelDomain(hostname));
  } finally {
    wasm.__wbg_encodingdetector_free(detector);
  }
}

/** Scripts and styles before the text are ASCII, whatever the character set. */
function* sampleOf(bytes: Uint8Array): Steps<Uint8Array> {
  let from = 0;
  while (from < bytes.byteLength && isAscii(bytes.subarray(from, from + SEARCHED_BYTES))) {
    from += SEARCHED_BYTES;
    yield;
  }
  const first = bytes.subarray(from, from + SEARCHED_BYTES).findIndex((byte) => byte >= 0x80);
  const start = from + Math.max(0, first);
  return bytes.subarray(start, start + SAMPLE_BYTES);
}

function isNearlyUtf8(sample: Uint8Array): boolean {
  let broken = 0;
  let whole = 0;
  // With `stream` a character that the sample ends within does not count.
  for (const character of new TextDecoder().decode(sample, { stream: true })) {
    if (character === '\ufffd') broken += 1;
    else if (character > '\x7f') whole += 1;
  }
  return whole > broken * WHOLE_FOR_EACH_BROKEN;
}

/** A top-level domain in the form that the detector takes; it ends itself on any other. */
function topLevelDomain(hostname = ''): string | undefined {
  const last = hostname.slice(hostname.lastIndexOf('.') + 1);
  return hostname.includes('.') && /^[a-z][a-z0-9-]{1,62}$/.test(last) ? last : undefined;
}

function load(): Exports {
  const file = fileURLToPath(import.meta.resolve('chardetng-wasm/dist/chardetng_wasm_bg.wasm'));
  const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)), {
    './chardetng_wasm_bg.js': {
      __wbindgen_throw() {
        throw new Error('the detector of character sets failed');
      },
    },
  });
  return instance.exports as unknown as Exports;
}

function copyIn(wasm: Exports, bytes: Uint8Array): number {
  const at = wasm.__wbindgen_malloc(bytes.byteLength);
  new Uint8Array(wasm.memory.buffer, at, bytes.byteLength).set(bytes);
  return at;
}

function readGuess(wasm: Exports, detector: number, domain: string | undefined): string {
  const result = wasm.__wbindgen_add_to_stack_pointer(-16);
  try {
    const name = Buffer.from(domain ?? '');
    const at = domain === undefined ? 0 : copyIn(wasm, name);
    wasm.encodingdetector_guess(result, detector, at, name.byteLength, 0);
    const [from = 0, length = 0] = new Uint32Array(wasm.memory.buffer, result, 2);
    const guess = Buffer.from(wasm.memory.buffer, from, length).toString('latin1').toLowerCase();
    wasm.__wbindgen_free(from, length);
    return guess;
  } finally {
    wasm.__wbindgen_add_to_stack_pointer(16);
  }
}
