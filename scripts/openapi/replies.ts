/** Replies that operations share: every status except 200, all with the same error body. */
const texts: Readonly<Record<string, string>> = {
  400: 'The body is not a JSON object.',
  401: 'The token is missing or unknown.',
  403: 'The token is of the other type.',
  404: 'There is no such crawler, job or result.',
  409: 'It exists with other values, or its state does not allow this.',
  413: 'The body is too long.',
  415: 'The `Content-Encoding` of the body is neither gzip nor identity.',
  422: 'A parameter or field is missing or wrong; `field` names it.',
  429: 'Too fast, or a queue is full. `Retry-After` says when to try again.',
  500: 'A fault of the service.',
  503: 'The service cannot answer now. `Retry-After` says when to try again.',
};

const names: Readonly<Record<string, string>> = {
  400: 'InvalidJson',
  401: 'Unauthenticated',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  413: 'TooLarge',
  415: 'UnsupportedEncoding',
  422: 'Invalid',
  429: 'Exhausted',
  500: 'Internal',
  503: 'Unavailable',
};

/** The schema of every error body. */
export const errorSchema = {
  type: 'object',
  description: 'Why a call failed. Further members depend on `code`.',
  properties: {
    error: { type: 'string', description: 'For a person.' },
    code: { type: 'string', description: 'Stable reason, for programs.' },
    field: { type: 'string', description: 'The parameter or field at fault.' },
    allowed: {
      type: 'array',
      items: { type: 'string' },
      description: 'The values that `field` can have.',
    },
    limit: { type: 'integer', description: 'The limit that was reached.' },
    request_id: {
      type: 'string',
      description: 'The `x-request-id` of the reply, as the log has it.',
    },
  },
  required: ['error', 'code'],
  additionalProperties: true,
};

/** `components.responses`. */
export function errorReplies(): Readonly<Record<string, unknown>> {
  const retry = {
    'Retry-After': {
      description: 'Seconds until it is worth trying again.',
      schema: { type: 'integer', minimum: 1 },
    },
  };
  return Object.fromEntries(
    Object.entries(texts).map(([status, description]) => [
      names[status],
      {
        description,
        ...(status === '429' || status === '503' ? { headers: retry } : {}),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  );
}

/** The error replies of one operation. */
export function errorResponses(
  verb: string,
  hasJsonBody: boolean,
): Readonly<Record<string, unknown>> {
  const statuses = Object.keys(texts).filter((status) => {
    if (status === '400') return hasJsonBody;
    if (status === '413' || status === '415') return verb === 'POST' || verb === 'PUT';
    return status !== '409' || verb !== 'GET';
  });
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${names[status]}` }]),
  );
}
