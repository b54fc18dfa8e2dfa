import type { Span, Tracing } from '../domain/tracing.ts';
import type { Store } from './store.ts';

/** The same store, which traces the write of each job's end. */
export function withTracing(store: Store, tracing: Tracing): Store {
  const { queue } = store;
  return {
    ...store,
    queue: {
      ...queue,
      async finish(outcomes, now, lease) {
        const spans = outcomes.flatMap(({ traceparent: parent, kind, rid }): Span[] => {
          if (parent === undefined) return [];
          const attributes = { 'messaging.message.id': rid, 'queued_crawler.end': kind };
          return [tracing.start({ name: 'store', kind: 'internal', parent, attributes })];
        });
        try {
          const receipt = await queue.finish(outcomes, now, lease);
          for (const span of spans) span.end();
          return receipt;
        } catch (error) {
          for (const span of spans) span.end({}, 'database_unavailable');
          throw error;
        }
      },
    },
  };
}
