/** Longest time of a timer of Node, in milliseconds; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Seconds of those units of gRPC that can exceed it, with 8 digits at most. */
const SECONDS: Readonly<Record<string, number>> = { H: 3_600, M: 60, S: 1 };

/** Shortens the timeout that a client gives in its headers, in any protocol, to what timers take. */
export function capTimeouts(headers: Headers): void {
  const ofConnect = headers.get('connect-timeout-ms') ?? '';
  if (/^\d{1,10}$/.test(ofConnect) && Number(ofConnect) > MAX_TIMER_MS) {
    headers.set('connect-timeout-ms', String(MAX_TIMER_MS));
  }
  const [, value, unit = ''] = /^(\d{1,8})([HMS])$/.exec(headers.get('grpc-timeout') ?? '') ?? [];
  const mostSeconds = Math.floor(MAX_TIMER_MS / 1_000);
  if (Number(value) * (SECONDS[unit] ?? 0) > mostSeconds) {
    headers.set('grpc-timeout', `${mostSeconds}S`);
  }
}
