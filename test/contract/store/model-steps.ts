import * as fc from 'fast-check';

/** A step of a crawler's life; `pick` chooses among the jobs it could be about. */
export type Step =
  | {
      readonly do: 'push';
      readonly count: number;
      readonly timeout: boolean;
      /** Default 5. */
      readonly priority?: number;
      /** Seconds until they may be crawled. */
      readonly delay?: number;
      readonly key?: string | undefined;
      /** Seconds for which the key holds; 0 while its job is in the queue. Default 0. */
      readonly keyFor?: number;
      readonly batch?: string | undefined;
    }
  | { readonly do: 'claim'; readonly count: number }
  | { readonly do: 'succeed' | 'fail' | 'retry' | 'release' | 'delete_job'; readonly pick: number }
  | { readonly do: 'close_batch' | 'cancel_batch'; readonly batch: string }
  | { readonly do: 'complete_batches' }
  | { readonly do: 'pause' | 'unpause' | 'purge' | 'expire' | 'crash' | 'delete_crawler' };

const picked = fc.nat(20);
/** Random lives. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('push' as const),
        count: fc.integer({ min: 1, max: 4 }),
        timeout: fc.boolean(),
        priority: fc.constantFrom(5, 5, 5, 0, 4, 9),
        delay: fc.constantFrom(0, 0, 0, 3, 50),
        key: fc.constantFrom(undefined, undefined, 'a', 'b'),
        keyFor: fc.constantFrom(0, 0, 4, 400),
        batch: fc.constantFrom(undefined, 'one', 'two'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constantFrom('close_batch' as const, 'cancel_batch' as const),
        batch: fc.constantFrom('one', 'two'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('complete_batches' as const) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('claim' as const),
        count: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'succeed' as const,
          'fail' as const,
          'retry' as const,
          'release' as const,
          'delete_job' as const,
        ),
        pick: picked,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'pause' as const,
          'unpause' as const,
          'purge' as const,
          'expire' as const,
          'crash' as const,
        ),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete_crawler' as const) }) },
  ),
  { minLength: 5, maxLength: 30 },
);

/** A job that is returned untried after its deadline: only the queue timeout takes it. */
export const releasedAfterDeadline: Step[] = [
  { do: 'push', count: 1, timeout: true },
  { do: 'claim', count: 1 },
  { do: 'expire' },
  { do: 'claim', count: 1 },
  { do: 'release', pick: 0 },
  { do: 'claim', count: 1 },
  { do: 'expire' },
];

/** A URL that was pushed before makes no batch, and a closed batch does not refuse it. */
export const pushedBefore: Step[] = [
  { do: 'push', count: 1, timeout: false, key: 'a' },
  { do: 'push', count: 1, timeout: false, key: 'a', batch: 'one' },
  { do: 'close_batch', batch: 'one' },
  { do: 'push', count: 1, timeout: false, batch: 'one' },
  { do: 'close_batch', batch: 'one' },
  { do: 'push', count: 1, timeout: false, key: 'a', batch: 'one' },
];
