import { Command, type Option } from 'commander';
import { type CommandContext, openSession } from '../command-context.ts';

/** How long a shell waits for the names of crawlers. */
const NAMES_MS = 1_000;
const MAX_NAMES = 200;

/** `complete`, for shells alone: prints what may stand in place of the last word. */
export function createCompleteCommand(context: CommandContext): Command {
  return new Command('complete')
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (words: string[], _options: unknown, command: Command) => {
      const program = command.parent;
      if (program === null) return;
      const before = words.slice(0, -1);
      const word = words.at(-1) ?? '';
      const place = findPlace(program, before);
      const found = await candidates(context, command, place, word);
      for (const each of found.filter((text) => text.startsWith(word))) {
        context.stdout.write(`${each}\n`);
      }
    });
}

/** Where a word stands. */
interface Place {
  readonly command: Command;
  /** The option whose value it is. */
  readonly valueOf: Option | undefined;
  /** How many arguments of the command come before it. */
  readonly position: number;
}

function findPlace(program: Command, before: readonly string[]): Place {
  let command = program;
  let valueOf: Option | undefined;
  let position = 0;
  for (const word of before) {
    if (valueOf !== undefined) {
      valueOf = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const option = optionsOf(program, command).find(
        ({ long, short }) => word === long || word === short,
      );
      if (option !== undefined && !option.isBoolean()) valueOf = option;
      continue;
    }
    const below = command.commands.find((each) => each.name() === word);
    if (below === undefined) position += 1;
    else {
      command = below;
      position = 0;
    }
  }
  return { command, valueOf, position };
}

async function candidates(
  context: CommandContext,
  own: Command,
  { command, valueOf, position }: Place,
  word: string,
): Promise<readonly string[]> {
  const program = own.parent ?? own;
  if (valueOf !== undefined) {
    return valueOf.long === '--crawler' ? crawlerNames(context, own) : (valueOf.argChoices ?? []);
  }
  if (word.startsWith('-')) {
    return optionsOf(program, command).map((option) => option.long ?? '');
  }
  if (command.commands.length > 0) {
    return command.commands.map((each) => each.name()).filter((name) => name !== own.name());
  }
  const argument = command.registeredArguments[position];
  if (argument?.name() === 'crawler') return crawlerNames(context, own);
  return argument?.argChoices ?? [];
}

function optionsOf(program: Command, command: Command): Option[] {
  return [...command.options, ...program.options].filter((option) => !option.hidden);
}

/** Of the service, where it answers at once. */
async function crawlerNames(context: CommandContext, command: Command): Promise<string[]> {
  try {
    using session = await openSession(context, command);
    const call = { timeoutMs: NAMES_MS };
    const { crawlers } = await session.client.crawlers.listCrawlers({ pageSize: MAX_NAMES }, call);
    return crawlers.map(({ name }) => name);
  } catch {
    // A shell that completes has nobody to tell.
    return [];
  }
}
