import type { CdpEvent, CdpHandlers } from './cdp-connection.ts';

/** Handlers that call those of every list, in order. */
export function joinHandlers(...lists: readonly (CdpHandlers | undefined)[]): CdpHandlers {
  const joined = new Map<string, ((params: never) => void)[]>();
  for (const [name, handler] of lists.flatMap((each) => Object.entries(each ?? {}))) {
    joined.set(name, [...(joined.get(name) ?? []), handler]);
  }
  const entries = Array.from(joined, ([name, handlers]) => {
    const [only] = handlers;
    const all = (params: never): void => {
      for (const handler of handlers) handler(params);
    };
    return [name as CdpEvent, handlers.length === 1 ? only : all] as const;
  });
  return Object.fromEntries(entries) as CdpHandlers;
}
