import type { Traffic } from './proxy-traffic.ts';

/** Counts the traffic of one page, in both directions. */
export interface TrafficMeter {
  /** Whether a limit was passed. */
  readonly isExhausted: boolean;
  /** What was counted. */
  readonly traffic: Traffic;
  /** Counts bytes that came from a site. */
  received(chunk: Uint8Array): void;
  /** Counts bytes that were sent to a site. */
  sent(chunk: Uint8Array): void;
}

/** Makes a meter at zero; `onExhausted` is called once, when a limit is passed. */
export function createTrafficMeter(limits: {
  readonly maxReceivedBytes: number;
  readonly maxSentBytes: number;
  readonly onExhausted: () => void;
}): TrafficMeter {
  let received = 0;
  let sent = 0;
  let isExhausted = false;

  function check(): void {
    if (isExhausted) return;
    if (received <= limits.maxReceivedBytes && sent <= limits.maxSentBytes) return;
    isExhausted = true;
    limits.onExhausted();
  }

  return {
    get isExhausted() {
      return isExhausted;
    },
    get traffic() {
      return { received, sent };
    },
    received(chunk) {
      received += chunk.length;
      check();
    },
    sent(chunk) {
      sent += chunk.length;
      check();
    },
  };
}
