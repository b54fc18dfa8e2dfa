import {
  type CountedProcess,
  startCountedProcess,
} from '../test/support/commands/counted-process.ts';
import {
  ACKNOWLEDGE,
  COMMAND_SETTINGS,
  type CommandBench,
  type CommandFigure,
  commandsOfLeased,
  commandsOfOneUrl,
  commandsPerUrl,
  commandsWhenIdle,
} from '../test/support/commands/measure-commands.ts';
import { startReceiver } from '../test/support/receiver.ts';
import { startSite } from '../test/support/site.ts';

/** A figure of commands to MongoDB, with its name and its unit. */
export interface NamedFigure extends CommandFigure {
  readonly what: string;
  readonly unit: 'URL' | 'second';
}

/** Four processes that share a crawler, once each has its part of it. */
async function commandsOfShared(
  uri: string,
  bench: CommandBench,
  scale: number,
): Promise<NamedFigure> {
  await using open = new AsyncDisposableStack();
  const env = { MONGODB_URI: uri, ...COMMAND_SETTINGS };
  const helpers: CountedProcess[] = [];
  for (let n = 1; n < 4; n++) helpers.push(open.use(await startCountedProcess(env)));
  const options = { pageMs: 1_000, concurrency: 200, urls: 4_000 * scale, helpers };
  const figure = await commandsPerUrl(bench, options);
  const what = 'storage, pages of 1000 ms, concurrency 200, four processes';
  return { what, unit: 'URL', ...figure };
}

/**
 * Measures the commands that a service process sends to MongoDB, one figure after the other. `scale`
 * of 1 is full length.
 */
export async function* measureCommandFigures(
  uri: string,
  scale: number,
): AsyncGenerator<NamedFigure> {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: ACKNOWLEDGE });
  await using service = await startCountedProcess({ MONGODB_URI: uri, ...COMMAND_SETTINGS });
  const idle = await commandsWhenIdle(service, 10 * scale);
  yield { what: 'a process without work', unit: 'second', ...idle };
  const bench = { service, site, hook: receiver.url, idle };
  const single = await commandsOfOneUrl(bench, 10 * scale);
  yield { what: 'one URL to an idle crawler', unit: 'URL', ...single };
  for (const [pageMs, urls] of [
    [1_000, 500],
    [200, 2_000],
    [0, 5_000],
  ] as const) {
    for (const delivery of ['storage', 'webhook'] as const) {
      const options = { pageMs, concurrency: 50, urls: urls * scale, delivery };
      const what = `${delivery}, pages of ${pageMs} ms, concurrency 50`;
      yield { what, unit: 'URL', ...(await commandsPerUrl(bench, options)) };
    }
  }
  const crawlers = 500 * scale;
  // In windows of ten seconds it came to anything from 9.7 to 10.4.
  const leased = await commandsOfLeased(bench, crawlers, 30 * scale);
  yield { what: `${crawlers} leased crawlers without work`, unit: 'second', ...leased };
  // Last, because the processes that have ended here leave work to others for a while.
  yield await commandsOfShared(uri, bench, scale);
}
