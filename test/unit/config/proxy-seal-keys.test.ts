import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';

const FIRST = 'first-of-the-operator-4711';
const SECOND = 'second-of-the-operator-4711';

test.each([
  ['', []],
  [FIRST, [FIRST]],
  [`${SECOND},${FIRST}`, [SECOND, FIRST]],
  [` ${SECOND} , ${FIRST} `, [SECOND, FIRST]],
])('PROXY_SEAL_KEY=%s has the keys %j', (value, keys) => {
  expect(readConfig({ PROXY_SEAL_KEY: value }).proxySealKeys).toEqual(keys);
});

test.each([
  ['a weak key', `${FIRST},short`],
  ['a key that is easily guessed', `${FIRST},abababababababababab`],
  ['an empty key', `${FIRST},`],
  ['an empty first key', `,${FIRST}`],
])('%s stops the start, and the error shows no key', (_what, value) => {
  const read = () => readConfig({ PROXY_SEAL_KEY: value });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(/^PROXY_SEAL_KEY: /);
  expect(read).not.toThrow(new RegExp(FIRST));
});
