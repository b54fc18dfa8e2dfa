const LENGTHS = ['quick', 'full', 'long'] as const;

type Length = (typeof LENGTHS)[number];

/**
 * Which tests run, by `TEST_LENGTH`. `quick`: all files but the heavy ones (`heavy.ts`), as `npm test`
 * has it. `full`: all files, as continuous integration runs them. `long`: all files at full length.
 */
const length = lengthOf(process.env.TEST_LENGTH ?? 'full');

/** Whether the heavy files are left out. */
export const isQuick = length === 'quick';

/** Whether the tests run at full length, as `npm run test:long` has them. */
export const isLong = length === 'long';

/** How often or how much: `long` at full length, else `short`. */
export function byLength<T>(short: T, long: T): T {
  return isLong ? long : short;
}

function lengthOf(given: string): Length {
  const found = LENGTHS.find((each) => each === given);
  if (found === undefined) throw new Error(`TEST_LENGTH is one of ${LENGTHS.join(', ')}`);
  return found;
}
