import type { AnyRequest } from './node-http.ts';

/** What the parts that answer a request note about it, for the request log. */
export interface RequestNote {
  /** The pattern of the path, or the method of RPC; never the path itself, which holds tokens. */
  route: string;
  protocol: string;
  /** The address that the client calls from; empty when its connection is gone. */
  remote: string;
  /** The call, once there is one. */
  call: NotedCall | undefined;
}

/** What the log tells of a call. */
export interface NotedCall {
  readonly caller?: { readonly owner: { readonly account: { readonly name: string } } };
  /** Whether it came with the admin token. */
  readonly isOperator?: boolean;
  /** The reason of its failure. */
  readonly failure?: string;
}

const notes = new WeakMap<AnyRequest, RequestNote>();

/** The note of a request; an empty one at first. */
export function requestNote(request: AnyRequest): RequestNote {
  const known = notes.get(request);
  if (known !== undefined) return known;
  const remote = request.socket?.remoteAddress ?? '';
  const note = { route: '', protocol: 'http', remote, call: undefined };
  notes.set(request, note);
  return note;
}
