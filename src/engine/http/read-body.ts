import { discard } from '../../domain/discard.ts';
import type { Steps } from '../../domain/in-turns.ts';
import type { TargetAnswer } from '../../domain/status.ts';
import { headerValues } from '../../net/raw-headers.ts';
import type { Page } from '../engine.ts';
import { type PageBody, pageBody } from '../text/page-body.ts';
import { detectBlock } from './block-pages.ts';

/** A response whose body has to be read. It has no functions, so that another thread can do it. */
export interface ReceivedBody {
  readonly status: number;
  readonly headers: Page['headers'];
  /** The body as it arrived. A reader may take its memory. */
  readonly body: Uint8Array;
  /** Of the address that sent it. */
  readonly hostname: string;
  /** Largest length of the body in UTF-8. */
  readonly maxBytes: number;
}

/** A body as it is delivered, and whether it is a block page. */
export interface BodyRead extends PageBody {
  readonly block: TargetAnswer['block'];
  /** Whether the body is just what arrived. */
  readonly isUnchanged: boolean;
}

/** Reads a body, in steps. */
export function* readBody(received: ReceivedBody): Steps<BodyRead> {
  const { status, headers, body, maxBytes, hostname } = received;
  const block = detectBlock({ status, headers: new Map(headers), body });
  const type = headerValues(headers, 'content-type').at(-1);
  const shown = yield* pageBody(body, type, { maxBytes, hostname });
  if (shown.body?.buffer !== body.buffer) discard(body);
  return { ...shown, block, isUnchanged: shown.body === body };
}
