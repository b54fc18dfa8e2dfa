import { distance } from 'fastest-levenshtein';

/** Most characters by which a name may differ from the one that is meant. */
const MAX_TYPOS = 3;

/** The name among `known` that `name`, which is not there, nearly is: at most a quarter of it differs. */
export function meantName(name: string, known: readonly string[]): string | undefined {
  return known.find((each) => {
    const typos = Math.min(MAX_TYPOS, Math.floor(each.length / 4));
    return Math.abs(name.length - each.length) <= typos && distance(name, each) <= typos;
  });
}
