/** Work that is done once at a time: calls during a run share its end. */
export function oneAtATime<Value>(work: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<Value> | undefined;
  return () =>
    (running ??= work().finally(() => {
      running = undefined;
    }));
}
