import { errorText } from '../../domain/error-text.ts';
import { oneAtATime } from '../../domain/one-at-a-time.ts';
import { raceAbort } from '../../domain/race-abort.ts';
import type { Store } from '../../store/store.ts';

/** How something is set up. */
export type SetupState = 'ok' | 'missing' | 'failed' | 'unchecked';

/** What was found about one thing to set up. */
export interface SetupFinding {
  readonly state: SetupState;
  /** For a person. */
  readonly finding: string;
  /** What to do; empty when there is nothing. */
  readonly advice: string;
}

/** One thing to set up. */
export interface SetupItem extends SetupFinding {
  readonly name: string;
  /** Settings that it is about. */
  readonly settings: readonly string[];
}

/** A thing to set up, and how its state is found out. */
export interface SetupCheck extends Pick<SetupItem, 'name' | 'settings'> {
  /** By what is configured; takes no longer than a call. */
  look(): SetupFinding | Promise<SetupFinding>;
  /**
   * Tries whether it works, for what `look` finds unchecked; throws if not, with a message for a
   * person. Resolves with what was found; as text when all is well.
   */
  try?(signal: AbortSignal): Promise<string | SetupFinding>;
}

/** Says what is set up and what is not: what failed first, then what is missing. */
export type ReadSetup = (tries: boolean) => Promise<SetupItem[]>;

/** How long one thing may be tried. */
const TRY_MS = 20_000;

const ORDER: readonly SetupState[] = ['failed', 'missing', 'unchecked', 'ok'];

/** Makes the use case. What is tried is tried once at a time, however many ask. */
export function createSetup(deps: {
  readonly checks: readonly SetupCheck[];
  readonly accounts: Pick<Store['accounts'], 'list'>;
}): ReadSetup {
  const checks = [...deps.checks, addressesCheck(deps.accounts)];

  async function read(tries: boolean): Promise<SetupItem[]> {
    const items = await Promise.all(checks.map((check) => readOne(check, tries)));
    return items.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  }

  const tryAll = oneAtATime(() => read(true));
  return (tries) => (tries ? tryAll() : read(false));
}

async function readOne(check: SetupCheck, tries: boolean): Promise<SetupItem> {
  const { name, settings } = check;
  const looked = await check.look();
  if (!tries || looked.state !== 'unchecked' || check.try === undefined) {
    return { name, settings, ...looked };
  }
  const signal = AbortSignal.timeout(TRY_MS);
  try {
    const finding = await raceAbort(check.try(signal), signal);
    if (typeof finding !== 'string') return { name, settings, ...finding };
    return { name, settings, state: 'ok', finding, advice: '' };
  } catch (error) {
    const reason = signal.aborted ? `It took longer than ${TRY_MS / 1_000} s.` : errorText(error);
    return { name, settings, state: 'failed', finding: reason, advice: looked.advice };
  }
}

/** Accounts that are looked at. */
const MAX_ACCOUNTS = 1_000;

/** Whether owners of accounts can be told of a pause or a full queue. */
function addressesCheck(accounts: Pick<Store['accounts'], 'list'>): SetupCheck {
  return {
    name: 'account_addresses',
    settings: ['ACCOUNT_EMAIL'],
    async look() {
      const found = await accounts.list({ limit: MAX_ACCOUNTS });
      const without = found.filter(({ email }) => email === '').map(({ name }) => name);
      if (without.length === 0) {
        return { state: 'ok', finding: 'Every account has an e-mail address.', advice: '' };
      }
      const names = without.slice(0, 5).join(', ') + (without.length > 5 ? ', ...' : '');
      return {
        state: 'missing',
        finding: `Accounts without an e-mail address: ${without.length} of ${found.length} (${names}).`,
        advice:
          'Nobody is told when their crawlers are paused or their queue is full: set `email` of each account.',
      };
    },
  };
}
