import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { createRoom, type Room, type RoomPools } from '../http/room.ts';
import type { Call } from './method.ts';

/** The parts of a call that come from its connection. */
export type Transfer = Pick<Call, 'remote' | 'room' | 'sent'>;

/** Makes the transfer of a request. `findCaller` returns the caller once it is known. */
export function createTransfer(
  request: AnyRequest,
  response: AnyResponse,
  pools: RoomPools,
  findCaller: () => Call['caller'],
): Transfer {
  const remote = request.socket?.remoteAddress ?? '';
  let room: Room | undefined;
  let sent: Promise<boolean> | undefined;
  const newRoom = (): Room =>
    createRoom(
      pools,
      () => ({ accountId: findCaller()?.owner.account.accountId, remote }),
      (taken) => {
        if (isClosed(response)) taken.release();
        else response.once('close', () => taken.release());
      },
    );
  // Created on first use: most calls need neither.
  return {
    remote,
    get room() {
      return (room ??= newRoom());
    },
    get sent() {
      return (sent ??= sentWhole(response));
    },
  };
}

function isClosed(response: AnyResponse): boolean {
  return 'stream' in response ? (response.stream?.destroyed ?? true) : response.closed;
}

function sentWhole(response: AnyResponse): Promise<boolean> {
  return new Promise((resolve) => {
    if ('stream' in response) {
      const { stream } = response;
      if (stream === undefined || stream.destroyed) {
        resolve(false);
        return;
      }
      stream.once('close', () => resolve(stream.writableFinished && stream.rstCode === 0));
      return;
    }
    if (response.writableFinished) resolve(true);
    else if (response.closed) resolve(false);
    else {
      response.once('finish', () => resolve(true));
      response.once('close', () => resolve(response.writableFinished));
    }
  });
}
