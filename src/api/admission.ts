import type { Message } from '@bufbuild/protobuf';
import { acquireWithin } from '../fairness/acquire-within.ts';
import type { FairPool } from '../fairness/fair-pool.ts';
import { ROOM_WAIT_MS, type RoomGrant } from '../http/room.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { Call, Method } from './method.ts';
import { type Access, methodPolicy } from './policy.ts';
import { replyBytes } from './reply-bytes.ts';

/** Checks who calls, before anything of the call is read. */
export interface Admission {
  /**
   * Checks the token of a call, or `authorization: Bearer` when `token` is empty, and sets
   * `call.caller`, or `call.isOperator` for the admin token. Rejects with `unauthenticated`, or with `exhausted` when too many wrong tokens
   * came from the same address.
   */
  admit(called: CalledMethod, token: string, call: Call): Promise<void>;
}

/** The method that is called: who may call it, and its name for the log. */
export interface CalledMethod {
  readonly access: Access;
  /** Such as `CreateAccount`; of paths that no method answers, the verb and the path. */
  readonly method: string;
}

/** Makes the admission over an authenticator. */
export function createAdmission(authenticator: Authenticator): Admission {
  return {
    async admit({ access }, token, call) {
      if (access === 'public') return;
      if (access === 'admin') {
        authenticator.authenticateAdmin(call.bearer, call.remote);
        call.isOperator = true;
        return;
      }
      const given = token === '' ? call.bearer : token;
      if (call.caller !== undefined && call.caller.token === given) return;
      const owner = await authenticator.authenticate(given, call.remote);
      call.caller = { token: given ?? '', owner };
    },
  };
}

/**
 * Slots that the calls of all accounts share, so that slow calls of one account do not keep the
 * others from the database.
 */
export interface CallSlots {
  readonly slots: FairPool;
  /** How long a call waits for a slot, in milliseconds. Default 10,000. */
  readonly waitMs?: number;
}

/**
 * Wraps methods so that they run only with a checked token, also for each message of a stream. Unary
 * ones run in a slot and with memory where their policy asks for them. The slot is released when the method returns, not when its reply has
 * been sent; until then the call keeps the memory that its reply takes.
 */
export function withAdmission(
  methods: readonly Method[],
  admission: Admission,
  { slots, waitMs = ROOM_WAIT_MS }: CallSlots,
): Method[] {
  return methods.map((method): Method => {
    const { access, takesSlot, readBytes } = methodPolicy(method.desc);
    if (access === 'public') return method;
    const called = { access, method: method.desc.name };
    if (method.kind === 'server_streaming') {
      return {
        ...method,
        async *handle(request: Message, call: Call) {
          await admission.admit(called, tokenInMessage(request), call);
          yield* method.handle(request, call);
        },
      };
    }
    if (method.kind === 'bidi_streaming') {
      return {
        ...method,
        handle: (requests: AsyncIterable<Message>, call: Call) =>
          method.handle(admitted(requests, called, admission, call), call),
      };
    }
    return {
      ...method,
      async handle(request: Message, call: Call) {
        await admission.admit(called, tokenInMessage(request), call);
        if (!takesSlot) return method.handle(request, call);
        const accountId = call.caller?.owner.account.accountId ?? 'operator';
        // Before the slot: a call that waits for memory must not keep the others waiting.
        const memory = readBytes === 0 ? undefined : await takeMemory(call, readBytes);
        const slot = await acquireWithin(slots, { accountId }, 1, waitMs);
        try {
          const reply = await method.handle(request, call);
          memory?.shrink(replyBytes(reply));
          return reply;
        } finally {
          slot.release();
        }
      },
    };
  });
}

/** The messages of a stream whose token is right. One without a token has that of the message before. */
async function* admitted(
  requests: AsyncIterable<Message>,
  called: CalledMethod,
  admission: Admission,
  call: Call,
): AsyncGenerator<Message> {
  let token = '';
  for await (const request of requests) {
    token = tokenInMessage(request) || token;
    await admission.admit(called, token, call);
    yield request;
  }
}

/** The request has been decoded: what its body took is given back, or calls would wait for each other. */
function takeMemory({ room }: Call, bytes: number): Promise<RoomGrant> {
  room.giveBack();
  return room.take(bytes);
}

function tokenInMessage(request: Message): string {
  const { token } = request as { token?: unknown };
  return typeof token === 'string' ? token : '';
}
