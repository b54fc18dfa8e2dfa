import { Gauge, type Registry } from 'prom-client';

/** What the browsers of this process take now. */
export type MeasuredBrowser = () => {
  readonly pages: number;
  /** By kind of process. */
  readonly memoryBytes: Readonly<Record<string, number>>;
};

/** Makes the gauges of the browser; they cost nothing, because its memory is watched anyway. */
export function createBrowserGauges(registry: Registry, measured: MeasuredBrowser): void {
  const registers = [registry];
  new Gauge({
    name: 'queued_crawler_browser_pages',
    help: 'Pages that are open in the browser, in use or kept for another crawl.',
    registers,
    collect() {
      this.set(measured().pages);
    },
  });
  new Gauge({
    name: 'queued_crawler_browser_memory_bytes',
    help: 'Memory of the processes of the browser, without mapped files; Linux only.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, bytes] of Object.entries(measured().memoryBytes)) this.set({ kind }, bytes);
    },
  });
}
