import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { crawlerNotFound, DomainError, invalidField, missingField } from '../../domain/errors.ts';
import { isPossibleHost, parseHost, ruleFor } from '../../domain/host-rules.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import { type Removal, removeInBatches } from '../remove-in-batches.ts';
import type { CrawlerAccess } from './crawler-access.ts';

/** Pauses and purges hosts of a crawler. Every method throws as {@link CrawlerAccess} does. */
export interface HostManagement {
  /** Returns the host as it is kept. Throws `failed_precondition` when too many are paused. */
  pause(owner: TokenOwner, crawlerName: string, host: string): Promise<string>;
  /** Throws `failed_precondition` when an exception of the politeness pauses the host. */
  unpause(owner: TokenOwner, crawlerName: string, host: string): Promise<string>;
  /** Removes the waiting and retrying URLs of a host. */
  purge(owner: TokenOwner, crawlerName: string, host: string): Promise<Removal>;
}

const MAX_PAUSED = 1_000;

/** Makes the management of hosts. */
export function createHostManagement(deps: {
  readonly store: Pick<Store, 'crawlers' | 'hosts'>;
  readonly access: Pick<CrawlerAccess, 'find' | 'forget'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: Clock;
}): HostManagement {
  const { store, access, dispatcher, clock } = deps;

  async function setPaused(crawlerId: string, host: string, paused: boolean): Promise<void> {
    const result = await store.crawlers.setHostPaused(crawlerId, host, paused, clock.now());
    if (result === undefined) throw crawlerNotFound(crawlerId, 'name');
    access.forget(result.crawler);
    dispatcher.refresh(crawlerId);
  }

  return {
    async pause(owner, crawlerName, text) {
      const { crawlerId, pausedHosts = [] } = await access.find(owner, crawlerName);
      const host = toHost(text);
      // A paused host is kept in the crawler.
      if (!isPossibleHost(host)) throw noHost();
      if (pausedHosts.length >= MAX_PAUSED && !pausedHosts.includes(host)) {
        throw new DomainError(
          'failed_precondition',
          'too_many_paused_hosts',
          `${MAX_PAUSED} hosts of the crawler are paused. An exception in its politeness pauses many at once.`,
        );
      }
      await setPaused(crawlerId, host, true);
      return host;
    },

    async unpause(owner, crawlerName, text) {
      const { crawlerId, politeness } = await access.find(owner, crawlerName);
      const host = toHost(text);
      await setPaused(crawlerId, host, false);
      const rule = ruleFor(politeness?.hosts ?? [], host);
      if (rule?.paused === true) {
        throw new DomainError(
          'failed_precondition',
          'host_paused_by_rule',
          `The exception for ${rule.pattern} in the crawler's politeness pauses this host.`,
        );
      }
      await deps.scheduler.wake('crawl', crawlerId, clock.now());
      return host;
    },

    async purge(owner, crawlerName, text) {
      const { crawlerId } = await access.find(owner, crawlerName);
      const host = toHost(text);
      return removeInBatches(async (limit) => {
        const count = await store.hosts.purge(crawlerId, host, limit, clock.now());
        dispatcher.refresh(crawlerId);
        return count;
      });
    },
  };
}

function toHost(text: string): string {
  if (text === '') throw missingField('host');
  const host = parseHost(text);
  if (host !== undefined) return host;
  throw noHost();
}

function noHost(): DomainError {
  return invalidField('host', 'host must be a host with its port, such as example.com:8080.');
}
