import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { receivedWhole } from '../http/received.ts';
import { requestNote } from '../http/request-note.ts';
import { createRoom, type Room, type RoomPools } from '../http/room.ts';
import type { Call } from './method.ts';

/** The parts of a call that come from its connection. */
export type Transfer = Pick<Call, 'remote' | 'room' | 'received'>;

/**
 * Makes the transfer of a request. `findCaller` returns the caller once it is known. Room and end are
 * made on first use: most calls need neither.
 */
export function createTransfer(
  request: AnyRequest,
  response: AnyResponse,
  pools: RoomPools,
  findCaller: () => Call['caller'],
): Transfer {
  const { remote } = requestNote(request);
  let room: Room | undefined;
  let received: Promise<boolean> | undefined;

  function newRoom(): Room {
    return createRoom(
      pools,
      () => ({ accountId: findCaller()?.owner.account.accountId, remote }),
      (taken) => {
        if (isClosed(response)) taken.release();
        else response.once('close', () => taken.release());
      },
    );
  }

  return {
    remote,
    get room() {
      return (room ??= newRoom());
    },
    get received() {
      return (received ??= receivedWhole(response));
    },
  };
}

function isClosed(response: AnyResponse): boolean {
  return 'stream' in response ? (response.stream?.destroyed ?? true) : response.closed;
}
