import { Code } from '@connectrpc/connect';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type Fault, faultOf } from './fault.ts';
import { checkSession } from './session.ts';
import { isOffline } from './use-feed.ts';

/** Something the user does, once at a time. */
export interface Action<Arguments extends readonly unknown[]> {
  readonly busy: boolean;
  /** Why it failed the last time; undefined when it did not. */
  readonly fault: Fault | undefined;
  run(...given: Arguments): Promise<void>;
}

/** Makes an action of a call. While it runs, running it again does nothing. */
export function useAction<Arguments extends readonly unknown[]>(
  perform: (...given: Arguments) => Promise<void>,
): Action<Arguments> {
  const busy = useSignal(false);
  const fault = useSignal<Fault | undefined>(undefined);
  useEffect(() => {
    // That the service does not answer is over; what it answers stays.
    if (!isOffline.value && fault.peek()?.reason === '') fault.value = undefined;
  }, [isOffline.value]);
  return {
    busy: busy.value,
    fault: fault.value,
    async run(...given) {
      if (busy.peek()) return;
      busy.value = true;
      fault.value = undefined;
      try {
        await perform(...given);
      } catch (error) {
        const found = faultOf(error);
        fault.value = found;
        if (found.code === Code.Unauthenticated) void checkSession();
      } finally {
        busy.value = false;
      }
    },
  };
}
