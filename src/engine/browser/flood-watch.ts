import type { BrowserProcess } from './process-watch.ts';

/** What is looked at in a process here. */
type Process = Pick<BrowserProcess, 'pid' | 'kind' | 'messageSeconds'>;

/** Looks without a reply until a browser is taken for flooded: three seconds. */
const FLOODED_LOOKS = 6;
/** Looks after a page was ended in which no other is: the browser still takes what it has sent. */
const REST_LOOKS = 4;
/**
 * What taking messages costs a flooded browser at least in these looks. On a busy machine it takes
 * longer. A browser that encodes a large picture replies to nobody either, but takes few messages.
 */
const MIN_TAKEN_SECONDS = 0.5;
/** What sending them costs the page at least, as a share of that: several pages may flood it. */
const MIN_SENT = 0.05;

/**
 * Makes a function to be called every half second with the processes of a browser. It returns the
 * process to end when a page sends the browser more messages than it can take, for instance by
 * `console.log` in a loop. The browser then replies to no other page. That is a browser without a
 * reply to `ping` for three seconds; the page is the one that sends most.
 */
export function createFloodWatch(
  ping: () => Promise<unknown>,
): (processes: readonly Process[]) => number | undefined {
  let isWaiting = false;
  /** Since the ping; below zero in the rest after a page was ended. */
  let looks = 0;
  /** What messages had cost each process at look zero, by id. */
  let atFirst = new Map<number, number>();

  function send(): void {
    isWaiting = true;
    const setDone = () => {
      isWaiting = false;
    };
    ping().then(setDone, setDone);
  }

  return (processes) => {
    const used = ({ pid, messageSeconds }: Process) => messageSeconds - (atFirst.get(pid) ?? 0);
    looks = isWaiting || looks < 0 ? looks + 1 : 0;
    if (!isWaiting) send();
    if (looks <= 0) atFirst = new Map(processes.map((each) => [each.pid, each.messageSeconds]));
    if (looks < FLOODED_LOOKS) return undefined;
    const browser = processes.find(({ kind }) => kind === 'browser');
    const taken = browser === undefined ? 0 : used(browser);
    const [page] = processes
      .filter(({ kind }) => kind === 'renderer')
      .toSorted((left, right) => used(right) - used(left));
    if (page === undefined || taken < MIN_TAKEN_SECONDS) return undefined;
    if (used(page) < taken * MIN_SENT) return undefined;
    looks = -REST_LOOKS;
    return page.pid;
  };
}
