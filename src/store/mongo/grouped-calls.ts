/** Makes a call with a key. */
export type GroupedCall<Call, Answer> = (key: string, call: Call) => Promise<Answer>;

/**
 * Calls that arrive while another one with the same key is made share the next one. `endOf` tells the
 * index of the first that may not be made together with those before it; -1 if all may.
 */
export function createGroupedCalls<Call, Answer>(
  make: (key: string, group: readonly Call[]) => Promise<readonly Answer[]>,
  endOf: (calls: readonly Call[]) => number,
): GroupedCall<Call, Answer> {
  const waiting = new Map<string, (PromiseWithResolvers<Answer> & { readonly call: Call })[]>();

  async function drain(key: string): Promise<void> {
    const queue = waiting.get(key) ?? [];
    while (queue.length > 0) {
      const calls = queue.map(({ call }) => call);
      const end = endOf(calls);
      const group = queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
      try {
        const answers = await make(key, calls.slice(0, group.length));
        for (const [index, each] of group.entries()) each.resolve(answers[index] as Answer);
      } catch (error) {
        for (const each of group) each.reject(error);
      }
    }
    waiting.delete(key);
  }

  return (key, call) => {
    const one = { ...Promise.withResolvers<Answer>(), call };
    const others = waiting.get(key);
    if (others !== undefined) others.push(one);
    else {
      waiting.set(key, [one]);
      void drain(key);
    }
    return one.promise;
  };
}
