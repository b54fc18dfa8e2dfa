import { Code } from '@connectrpc/connect';
import { toConnectError } from '../src/api/errors.ts';
import { DomainError } from '../src/domain/errors.ts';
import { toHttpStatus } from '../src/rest/http-status.ts';
import { type ErrorReason, errorFamilies, errorTable } from './error-table.ts';

/** The HTTP statuses and gRPC codes of a reason; empty for a protocol that does not have it. */
function protocolCodes({ as, rpcOnly }: ErrorReason): {
  readonly http: string;
  readonly grpc: string;
} {
  const https = new Set<number>();
  const grpcs = new Set<string>();
  for (const each of as) {
    if (typeof each === 'number') https.add(each);
    else {
      const silent = { debug() {}, info() {}, warn() {}, error() {} };
      const { code } = toConnectError(new DomainError(each, '', ''), silent, {
        route: '',
      });
      if (rpcOnly !== true) https.add(toHttpStatus(code));
      grpcs.add(Code[code].replace(/(?<=[a-z])[A-Z]/g, '_$&').toUpperCase());
    }
  }
  return { http: [...https].join(', '), grpc: [...grpcs].join(', ') };
}

/** The text of `docs/errors.md`. */
export function errorsDocument(): string {
  const row = (each: ErrorReason): string => {
    const { http, grpc } = protocolCodes(each);
    return `| \`${each.reason}\` | ${http} | ${grpc} | ${each.meaning} |`;
  };
  const rows = errorTable.toSorted((a, b) => (a.reason < b.reason ? -1 : 1)).map(row);
  return `# Errors

A refused call has a stable reason for programs and a text for people; the text may change. Over REST they are \`code\` and \`error\` of the JSON body, with \`field\` where a parameter is at fault
and \`request_id\`, the \`x-request-id\` of the reply. Over RPC they are \`reason\` of \`google.rpc.ErrorInfo\` (domain \`queuedcrawler\`) and the status message, with \`google.rpc.BadRequest\` and the id in \`google.rpc.RequestInfo\`. An item of
a batch or stream that is refused has the same reason in its \`error\`.

429 and 503 (RESOURCE_EXHAUSTED, UNAVAILABLE) are worth another try after \`Retry-After\` (\`google.rpc.RetryInfo\`); nothing else is, unchanged. For items of a batch, that try needs another \`request_id\`. 409 is the HTTP status
of both ALREADY_EXISTS and FAILED_PRECONDITION.

| reason | HTTP | gRPC | meaning |
|---|---|---|---|
${rows.join('\n')}

Made of a name:

| reason | HTTP | gRPC | meaning |
|---|---|---|---|
${errorFamilies.map(row).join('\n')}

Calls that end for a reason of the protocol carry none of these. Over REST their \`code\` is the RPC code's name in lower case (\`deadline_exceeded\` with 504,
\`unavailable\` with 503 while the service stops).

Why a crawl failed is no error of a call but part of its result: \`cb_status\` and \`failure\`, see [statuses](statuses.md).

This table is made from \`scripts/error-table.ts\`: \`npm run docs\`. A test compares it with the source.
`;
}
