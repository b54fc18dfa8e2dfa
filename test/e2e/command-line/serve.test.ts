import { expect, test } from 'vitest';
import { runCommandLine } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('serve refuses a port and a file of settings that it cannot use, before it starts', async () => {
  await using folder = await temporaryFolder();
  const env = { HOME: folder.path };
  const port = /--port must be a whole number from 0 to 65535, not "(abc|65536|-1)"/;
  const cases: readonly [args: string[], text: RegExp][] = [
    [['--port', 'abc'], port],
    [['--port', '65536'], port],
    [['--port', '-1'], port],
    [['--env-file', '/nofile'], /--env-file cannot be read: there is no file or folder \/nofile/],
    [['--env-file', folder.path], /--env-file cannot be read: .* is a folder, not a file/],
  ];
  for (const [args, text] of cases) {
    const { code, stdout, stderr } = await runCommandLine(['serve', ...args], { env });
    expect([args, code, stdout]).toEqual([args, 2, '']);
    expect(stderr).toMatch(text);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }
});
