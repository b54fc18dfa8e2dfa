/** The same value with the names that REST has: `callbackUrl` becomes `callback_url`. */
export function snakeCased(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      typeof each === 'object' && each !== null && !Array.isArray(each) ? snakeCased(each) : each,
    ]),
  );
}
