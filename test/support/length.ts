/** Whether the tests run at full length, as `npm run test:long` has them. */
export const isLong = process.env.TEST_LENGTH === 'long';

/** How often or how much: `long` at full length, else `short`. */
export function byLength<T>(short: T, long: T): T {
  return isLong ? long : short;
}
