import type { Span, Tracing } from '../domain/tracing.ts';
import type { JobOutcome, Store } from './store.ts';

/** The same store, which traces the write of each job's end. */
export function withTracing(store: Store, tracing: Tracing): Store {
  const { queue } = store;
  return {
    ...store,
    queue: {
      ...queue,
      finish: (outcomes, now) => traced(outcomes, () => queue.finish(outcomes, now)),
      turn: (lease, work, now) => traced(work.ended, () => queue.turn(lease, work, now)),
    },
  };

  async function traced<T>(
    outcomes: readonly JobOutcome[] | undefined,
    write: () => Promise<T>,
  ): Promise<T> {
    const spans = (outcomes ?? []).flatMap(({ traceparent: parent, kind, rid }): Span[] => {
      if (parent === undefined) return [];
      const attributes = { 'messaging.message.id': rid, 'queued_crawler.end': kind };
      return [tracing.start({ name: 'store', kind: 'internal', parent, attributes })];
    });
    try {
      const written = await write();
      for (const span of spans) span.end();
      return written;
    } catch (error) {
      for (const span of spans) span.end({}, 'database_unavailable');
      throw error;
    }
  }
}
