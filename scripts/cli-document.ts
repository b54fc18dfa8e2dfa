import { PassThrough } from 'node:stream';
import { EXIT_CODE, EXIT_MEANINGS } from '../src/cli/exit-code.ts';
import { allCommands, createProgram } from '../src/cli/program.ts';

/** The text of `docs/cli.md`: what `--help` says of each command. */
export function cliDocument(): string {
  const stream = () => Object.assign(new PassThrough(), { isTTY: false });
  const program = createProgram({
    env: {},
    stdin: stream(),
    stdout: stream(),
    stderr: stream(),
    signal: new AbortController().signal,
    setExitCode: () => undefined,
  });
  const shown = allCommands(program).filter((command) => command.name() !== 'complete');
  const sections = shown
    .filter((command) => command === program || command.commands.length === 0)
    .map((command) => {
      let help = '';
      command.configureOutput({
        writeOut: (text) => {
          help += text;
        },
        getOutHelpWidth: () => 110,
      });
      command.outputHelp();
      const names = [];
      for (let each: typeof command | null = command; each !== null; each = each.parent) {
        names.unshift(each.name());
      }
      const title = command === program ? 'Options of every command' : names.slice(1).join(' ');
      return `## ${title}\n\n\`\`\`text\n${help.trim()}\n\`\`\`\n`;
    });
  const codes = Object.entries(EXIT_CODE).map(
    ([name, code]) => `| ${code} | ${EXIT_MEANINGS[name as keyof typeof EXIT_MEANINGS]} |`,
  );
  return `# The command line

\`queued-crawler\` runs the service and is a client of it, over the public API. In the project's folder it is \`npx queued-crawler\`; \`npm link\` puts it on the PATH.

    queued-crawler init --local        # makes tokens, kept in a profile
    queued-crawler serve               # in another terminal
    queued-crawler crawler create shop
    queued-crawler push shop https://example.com/ | queued-crawler results

- A setting is taken from its flag, else from the environment, else from the profile, which \`init\` writes (\`~/.config/queued-crawler/profiles.json\` or \`QUEUED_CRAWLER_PROFILES\`, mode 0600).
  Tokens on the command line are seen by every user of the machine: use the profile or the environment.
- Results go to standard output, everything else to standard error. \`--json\` prints one JSON object a line, in the words of the REST API; a failure is
  \`{"error": {"message", "reason", "field"}}\` on standard error.
- \`push\` reads its input as fast as the service takes it, and waits when the rate or a queue is full. After an interruption it continues with \`--run-id\`: what the service has
  is not queued again. \`results --to\` continues where it was.

| exit code | meaning |
|---|---|
${codes.join('\n')}

Before \`serve\` begins, Node itself looks for the file of \`--env-file\`, and ends with exit code 9 if it does not exist.

${sections.join('\n')}`;
}
