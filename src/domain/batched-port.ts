/** A batch: one message for each iteration of the event loop costs less than one for each item. */
export type Messages<Message> = readonly Message[];

/** Sends messages together: those of one iteration of the event loop, or of a part of it. */
export interface BatchedPort<Message> {
  post(message: Message, transfer?: readonly ArrayBuffer[]): void;
}

/**
 * In an iteration that takes longer, what it has posted so far is sent, so that the other thread
 * continues in parallel. Otherwise a crawler's slots would wait for one another at each thread.
 */
const LONGEST_WAIT_MS = 0.3;

/**
 * Makes the sender over a thread's port. It sends in order, when the current callbacks are done at
 * the latest, or with the first message that comes `longestWaitMs` after the first of its batch.
 */
export function createBatchedPort<Message>(
  port: {
    postMessage(messages: Messages<Message>, transfer: readonly ArrayBuffer[]): void;
  },
  {
    longestWaitMs = LONGEST_WAIT_MS,
    now = () => performance.now(),
  }: { readonly longestWaitMs?: number; readonly now?: () => number } = {},
): BatchedPort<Message> {
  let messages: Message[] = [];
  let transfers: ArrayBuffer[] = [];
  let firstAt = 0;
  let isScheduled = false;

  function flush(): void {
    if (messages.length === 0) return;
    const batch = messages;
    const moved = transfers;
    messages = [];
    transfers = [];
    port.postMessage(batch, moved);
  }

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      flush();
    });
  }

  return {
    post(message, transfer = []) {
      const at = now();
      if (messages.length === 0) {
        firstAt = at;
        schedule();
      }
      messages.push(message);
      transfers.push(...transfer);
      if (at - firstAt > longestWaitMs) flush();
    },
  };
}
