/** A source of inputs that are nearly right: pieces of the real thing, shuffled, cut and spoilt. The same seed gives the same. */
export interface Noise {
  /** Whole number in [0, below). */
  int(below: number): number;
  pick<T>(list: readonly T[]): T;
  /** Some of `pieces` and some random characters, joined. */
  text(pieces: readonly string[], most?: number): string;
  bytes(most: number): Buffer;
}

/** Makes one; `seed` is any number but 0. */
export function createNoise(seed: number): Noise {
  let state = seed >>> 0 || 1;
  const next = (): number => {
    // xorshift32
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
  const int = (below: number): number => next() % below;
  const pick = <T>(list: readonly T[]): T => list[int(list.length)] as T;
  const character = (): string => {
    const kind = int(8);
    if (kind < 5) return String.fromCharCode(0x20 + int(0x5f));
    if (kind === 5) return String.fromCharCode(int(0x20));
    if (kind === 6) return String.fromCharCode(int(0x10000));
    return String.fromCodePoint(0x1f300 + int(0x200));
  };
  return {
    int,
    pick,
    text(pieces, most = 6) {
      let text = '';
      for (let left = int(most + 1); left > 0; left -= 1) {
        text += int(3) === 0 ? character() : pick(pieces);
        if (int(12) === 0) text = text.slice(0, int(text.length + 1));
        if (int(40) === 0) text = text.repeat(1 + int(20));
      }
      return text;
    },
    bytes(most) {
      const bytes = Buffer.alloc(int(most + 1));
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = next();
      return bytes;
    },
  };
}
