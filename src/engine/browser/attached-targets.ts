import type { Protocol } from 'devtools-protocol';
import type { CdpCommand, CdpConnection, CdpHandlers, CdpParams } from './cdp-connection.ts';
import { joinHandlers } from './join-handlers.ts';

type Attached = Protocol.Target.AttachedToTargetEvent;

/** Sends a command to a target; nothing is known of its result. */
export type SendToTarget = <Name extends CdpCommand>(
  command: Name,
  params?: CdpParams<Name>,
) => void;

/**
 * What a page does with each target of its context other than itself: workers of every kind, and
 * frames in processes of their own.
 */
export interface OtherTargets {
  /** Is called before the target runs. */
  setUp(type: string, send: SendToTarget): void;
  /** For the events of the targets. */
  readonly handlers: CdpHandlers;
}

/** The sessions of the targets that belong to one page. */
export interface AttachedTargets {
  /** For the events of the page's own session. */
  readonly handlers: CdpHandlers;
  /** Sets up a target and lets it run. */
  attach(event: Attached): void;
  /** Replaces what is done with targets from now on. */
  use(others: OtherTargets): void;
  /** Forgets all sessions. */
  end(): void;
}

/** Has targets that a session starts attached to it, and wait until they are told to run. */
export const AUTO_ATTACH = {
  autoAttach: true,
  waitForDebuggerOnStart: true,
  flatten: true,
} as const satisfies Protocol.Target.SetAutoAttachRequest;

/** The same for shared workers, which are no page's, to be sent to the browser. */
export const AUTO_ATTACH_SHARED = {
  ...AUTO_ATTACH,
  // Windows that pages open wait until they are attached.
  filter: [...['page', 'shared_worker'].map((type) => ({ type })), { exclude: true }],
} as const satisfies Protocol.Target.SetAutoAttachRequest;

/** Events of further targets of a page are not received, and what they start is not set up. */
const MAX_SESSIONS = 500;

/** Makes an empty set for one page. */
export function createAttachedTargets(cdp: CdpConnection): AttachedTargets {
  const sessions = new Set<string>();
  let others: OtherTargets | undefined;

  const handlers: CdpHandlers = {
    'Target.attachedToTarget': attach,
    'Target.detachedFromTarget': ({ sessionId }) => forget(sessionId),
  };

  function attach({ sessionId, targetInfo }: Attached): void {
    const send = sendTo(cdp, sessionId);
    if (sessions.size < MAX_SESSIONS) {
      sessions.add(sessionId);
      cdp.listen(sessionId, joinHandlers(handlers, others?.handlers));
      send('Target.setAutoAttach', AUTO_ATTACH);
    }
    others?.setUp(targetInfo.type, send);
    send('Runtime.runIfWaitingForDebugger');
  }

  function forget(sessionId: string): void {
    if (sessions.delete(sessionId)) cdp.unlisten(sessionId);
  }

  return {
    handlers,
    attach,
    use(newOthers) {
      others = newOthers;
    },
    end() {
      for (const sessionId of Array.from(sessions)) forget(sessionId);
    },
  };
}

/** A target ends whenever its page likes, so a command that fails concerns nobody. */
export function sendTo(cdp: CdpConnection, sessionId: string): SendToTarget {
  return (command, params) => void cdp.send(command, params, { sessionId }).catch(() => undefined);
}
