import { performance } from 'node:perf_hooks';
import { type ServiceClock, wallNow } from '../domain/clock.ts';
import { defined } from '../domain/defined.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import type { DeliveryResult } from './webhook.ts';

/** How a POST ended. */
export interface Sent {
  readonly status: number;
  /** Empty when it was acknowledged. */
  readonly error: string;
  readonly answer: EndpointAnswer;
  readonly excerpt?: string | undefined;
}

/** An attempt that sends nothing. */
export function unsent(error: string): Sent {
  return { status: 0, error, answer: { kind: 'other' } };
}

/** Times an attempt, and makes its result of a delivery: acknowledged when `error` is empty. */
export function startAttempt(clock: ServiceClock) {
  const startedAt = wallNow(clock);
  const started = performance.now();
  return {
    end({ attempt }: Delivery, { status, error, answer, excerpt }: Sent): DeliveryResult {
      const durationMs = Math.round(performance.now() - started);
      const log = { attempt, startedAt, status, durationMs, error };
      return {
        acknowledged: error === '',
        answer,
        log: { ...log, ...defined({ answer: excerpt }) },
      };
    },
  };
}
