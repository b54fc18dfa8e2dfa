/** Rejects with the error of `late` when `work` takes longer than `ms`; the work is left alone then. */
export async function withDeadline<Value>(
  work: Promise<Value>,
  ms: number,
  late: () => Error,
): Promise<Value> {
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(late()), ms);
  timeout.unref();
  try {
    return await Promise.race([work, timer.promise]);
  } finally {
    clearTimeout(timeout);
    // Nobody waits for it any more.
    work.catch(() => undefined);
  }
}

/** The same object with a deadline for each of its asynchronous methods. */
export function withDeadlines<Methods extends object>(
  methods: Methods,
  ms: number,
  late: () => Error,
): Methods {
  const wrapped = Object.entries(methods).map(([name, method]) => [
    name,
    typeof method === 'function'
      ? (...args: unknown[]) => withDeadline(Promise.resolve(method(...args)), ms, late)
      : method,
  ]);
  return Object.fromEntries(wrapped) as Methods;
}
