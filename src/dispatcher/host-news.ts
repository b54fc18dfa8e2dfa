import type { HostTrouble } from '../domain/host-state.ts';
import type { HostAnswer, HostAway } from './host-health.ts';

/** What a crawl tells about its host. */
export interface HostNews {
  /** Absent when it tells nothing, as when it was aborted. */
  readonly answer?: HostAnswer;
  /** The delay that robots.txt asks for, 0 for none; absent when it was not read. */
  readonly robotsDelayMs?: number;
  /** How the try ended; absent without a try. */
  readonly tried?: { readonly failure?: string };
}

/** What a crawl has to know of its host, and to tell. */
export interface HostInquiry {
  /** Absent while the host is not put aside. */
  readonly hostAway?: HostAway;
  /** Called when a request was sent to it. */
  readonly onSent?: () => void;
}

/** A host whose trouble has changed, for the log. */
export interface HostChange {
  readonly host: string;
  /** Undefined when the host bears everything again. */
  readonly trouble: HostTrouble | undefined;
}
