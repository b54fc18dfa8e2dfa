import type { BrowserProcess } from './process-watch.ts';

/** What is looked at in a process here. */
type Process = Pick<BrowserProcess, 'pid' | 'kind' | 'cpuSeconds' | 'messageSeconds'>;

/** Looks without a reply until a browser is taken for flooded: two seconds. */
const FLOODED_LOOKS = 4;
/** Looks after a page was ended until another may be: the browser still takes what it has sent. */
const REST_LOOKS = 8;
/**
 * What taking messages costs a flooded browser at least in these looks, and what sending them costs
 * the page. On a busy machine it takes longer. A browser that encodes a large picture replies to
 * nobody either, but takes few messages.
 */
const MIN_CPU_SECONDS = 0.4;

/**
 * Makes a function to be called every half second with the processes of a browser. It returns the
 * process to end when a page sends the browser more messages than it can take, for instance by
 * `console.log` in a loop. The browser then replies to no other page. That is a browser without a
 * reply to `ping` for two seconds; the page is the one that uses most processor time.
 */
export function createFloodWatch(
  ping: () => Promise<unknown>,
): (processes: readonly Process[]) => number | undefined {
  let isWaiting = false;
  /** Since the ping, or since the rest after a page was ended, in which it is below zero. */
  let looks = 0;
  /** The processes at look zero, by id. */
  let atFirst = new Map<number, Process>();

  function begin(processes: readonly Process[], from = 0): void {
    looks = from;
    atFirst = new Map(processes.map((each) => [each.pid, each]));
  }

  return (processes) => {
    if (!isWaiting) {
      isWaiting = true;
      begin(processes);
      const setDone = () => {
        isWaiting = false;
      };
      ping().then(setDone, setDone);
      return undefined;
    }
    looks += 1;
    if (looks === 0) begin(processes);
    if (looks < FLOODED_LOOKS) return undefined;
    const used = ({ pid, cpuSeconds }: Process) => cpuSeconds - (atFirst.get(pid)?.cpuSeconds ?? 0);
    const browser = processes.find(({ kind }) => kind === 'browser');
    const before = browser && atFirst.get(browser.pid)?.messageSeconds;
    const taken = (browser?.messageSeconds ?? 0) - (before ?? 0);
    const [page] = processes
      .filter(({ kind }) => kind === 'renderer')
      .toSorted((left, right) => used(right) - used(left));
    if (page === undefined || Math.min(used(page), taken) < MIN_CPU_SECONDS) return undefined;
    begin(processes, FLOODED_LOOKS - REST_LOOKS);
    return page.pid;
  };
}
