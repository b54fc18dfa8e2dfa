import { rememberSecrets } from './redaction.ts';

/** A reply of the REST API. */
export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined when it is not JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read replies of many shapes
  readonly json: any;
  readonly text: string;
}

/** Calls a REST path. */
export async function callRest(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RestReply> {
  const json = body !== undefined && typeof body !== 'string';
  const response = await fetch(url, {
    method,
    headers: { ...(json ? { 'content-type': 'application/json' } : {}), ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: json ? JSON.stringify(body) : body }),
  });
  const text = await response.text();
  const value = parsed(text);
  rememberSecrets(value);
  return { status: response.status, headers: response.headers, text, json: value };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the test reads `text`.
    return undefined;
  }
}
