import { Counter, type Registry } from 'prom-client';

/** What the numbers of ladders are read from, by the name of the rung. */
export type MeasuredLadders = () => Iterable<
  readonly [rung: string, ends: Readonly<Record<'pages' | 'blocks' | 'failures', number>>]
>;

/** Makes the numbers of rungs. */
export function createLadderCounter(registry: Registry, read: MeasuredLadders): void {
  new Counter({
    name: 'queued_crawler_rung_tries_total',
    help: 'Crawls by a rung of a ladder: a page came, the host blocked it, or it failed otherwise.',
    labelNames: ['rung', 'end'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [rung, { pages, blocks, failures }] of read()) {
        this.inc({ rung, end: 'page' }, pages);
        this.inc({ rung, end: 'block' }, blocks);
        this.inc({ rung, end: 'failure' }, failures);
      }
    },
  });
}
