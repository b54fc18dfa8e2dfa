/** Writes one wake; it is durable when the promise resolves. */
export type WriteWake = (name: string, key: string, at: Date) => Promise<void>;

interface Waiting {
  at: Date;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Lets wakes of one task share writes: while one write is in flight, all wakes that arrive wait for
 * one second write, due at the earliest of them. They cannot share the write in flight, because the
 * task may have begun already.
 */
export function createWakeWriter(write: WriteWake): WriteWake {
  const inFlight = new Map<string, Waiting | undefined>();

  async function send(id: string, name: string, key: string, at: Date): Promise<void> {
    inFlight.set(id, undefined);
    try {
      await write(name, key, at);
    } finally {
      const waiting = inFlight.get(id);
      inFlight.delete(id);
      if (waiting !== undefined)
        send(id, name, key, waiting.at).then(waiting.done.resolve, waiting.done.reject);
    }
  }

  return (name, key, at) => {
    const id = `${name}/${key}`;
    if (!inFlight.has(id)) return send(id, name, key, at);
    const waiting = inFlight.get(id) ?? { at, done: Promise.withResolvers<void>() };
    if (at < waiting.at) waiting.at = at;
    inFlight.set(id, waiting);
    return waiting.done.promise;
  };
}
