import type { Config } from '../config/config.ts';
import type { AppTiming } from '../config/timing.ts';
import type { ServiceClock } from '../domain/clock.ts';
import type { AdjustableLogger } from '../domain/logger.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import type { Tracing } from '../domain/tracing.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { AppPools } from './app-pools.ts';
import type { PublicUrl } from './public-url.ts';

/** What every part of the app is made with. */
export interface AppContext {
  readonly config: Config;
  readonly logger: AdjustableLogger;
  readonly tracing: Tracing;
  readonly clock: ServiceClock;
  readonly timing: AppTiming;
  readonly traits: StoreTraits;
  readonly metrics: Metrics;
  readonly pools: AppPools;
  readonly publicUrl: PublicUrl;
  /** Names this process among those that share the database. */
  readonly processId: string;
}
