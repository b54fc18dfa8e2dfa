import type { Messages } from './messages.ts';

/** Sends the messages of one iteration of the event loop together. */
export interface BatchedPort<Message> {
  post(message: Message, transfer?: readonly ArrayBuffer[]): void;
}

/** Makes the sender over a thread's port. It sends when the current callbacks are done, in order. */
export function createBatchedPort<Message>(port: {
  postMessage(messages: Messages<Message>, transfer: readonly ArrayBuffer[]): void;
}): BatchedPort<Message> {
  let messages: Message[] = [];
  let transfers: ArrayBuffer[] = [];

  function flush(): void {
    const batch = messages;
    const moved = transfers;
    messages = [];
    transfers = [];
    port.postMessage(batch, moved);
  }

  return {
    post(message, transfer = []) {
      if (messages.length === 0) setImmediate(flush);
      messages.push(message);
      transfers.push(...transfer);
    },
  };
}
