import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { receivedWhole } from '../http/received.ts';
import { requestNote } from '../http/request-note.ts';
import { createRoom, type Room, type RoomPools } from '../http/room.ts';
import type { Call } from './method.ts';

/** The parts of a call that come from its connection. */
export type Transfer = Pick<Call, 'remote' | 'room' | 'received'>;

/** Makes the transfer of a request. `findCaller` returns the caller once it is known. */
export function createTransfer(
  request: AnyRequest,
  response: AnyResponse,
  pools: RoomPools,
  findCaller: () => Call['caller'],
): Transfer {
  return new ConnectionTransfer(request, response, pools, findCaller);
}

/** Room and end are made on first use: most calls need neither. */
class ConnectionTransfer implements Transfer {
  readonly remote: string;
  readonly #response: AnyResponse;
  readonly #pools: RoomPools;
  readonly #findCaller: () => Call['caller'];
  #room: Room | undefined;
  #received: Promise<boolean> | undefined;

  constructor(
    request: AnyRequest,
    response: AnyResponse,
    pools: RoomPools,
    findCaller: () => Call['caller'],
  ) {
    this.remote = requestNote(request).remote;
    this.#response = response;
    this.#pools = pools;
    this.#findCaller = findCaller;
  }

  get room(): Room {
    return (this.#room ??= this.#newRoom());
  }

  get received(): Promise<boolean> {
    return (this.#received ??= receivedWhole(this.#response));
  }

  #newRoom(): Room {
    const response = this.#response;
    return createRoom(
      this.#pools,
      () => ({ accountId: this.#findCaller()?.owner.account.accountId, remote: this.remote }),
      (taken) => {
        if (isClosed(response)) taken.release();
        else response.once('close', () => taken.release());
      },
    );
  }
}

function isClosed(response: AnyResponse): boolean {
  return 'stream' in response ? (response.stream?.destroyed ?? true) : response.closed;
}
