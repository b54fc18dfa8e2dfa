import type { Schema } from './schemas.ts';

/** A whole number. */
export const integer = { type: 'integer' };

/** Any text. */
export const text = { type: 'string' };

/** The content of a JSON body. */
export const json = (schema: Schema) => ({ 'application/json': { schema } });

const facts: Readonly<Record<string, Schema>> = {
  original_status: { ...integer, description: 'Status returned by the crawled site.' },
  pc_status: { ...integer, description: 'The same as `cb_status`, under its older name.' },
  cb_status: { ...integer, description: 'Status given by the service.' },
  url: { ...text, description: 'Address of the page after redirects.' },
  pushed_url: { ...text, description: 'The URL as the call gave it.' },
  rid: { ...text, description: 'The job, where there is one.' },
  screenshot_url: { ...text, description: 'Where the picture is read for one hour.' },
  screenshot_failed: { ...text, description: 'Why there is no picture though one was asked for.' },
  failure: { ...text, description: 'Why the crawl failed; absent with `cb_status` 200.' },
};

/** What a reply tells of a stored page in addition to it. */
export const storedFacts = {
  ...facts,
  stored_at: { ...text, format: 'date-time', description: 'When it was stored.' },
};

/** What is told of a page that was crawled in the same call. */
export const crawledFacts = {
  ...facts,
  storage_url: { ...text, description: 'Where the stored copy is read; with `store`.' },
  stored_at: {
    ...text,
    format: 'date-time',
    description: 'When the copy was stored; with `store`.',
  },
  ignored_parameters: {
    ...text,
    description: 'Parameters without effect, because they need the JavaScript token.',
  },
};

/** What the paths of other products of the reference service tell in addition. */
export const countedFacts = {
  ...facts,
  remaining_requests: { ...integer, description: 'Always plenty: nothing is counted down.' },
};

/** The facts as one JSON object with the page. */
export function envelope(properties: Readonly<Record<string, Schema>>): Schema {
  return {
    type: 'object',
    properties: {
      ...properties,
      body: {
        type: ['string', 'object', 'array'],
        items: {},
        description:
          'The page; base64 of it when `body_encoding` says so. With a scraper, inline in format html, the data.',
      },
      body_encoding: { ...text, enum: ['base64'], description: 'Set when the page is not text.' },
    },
    patternProperties: {
      '^original_(?!status$)': { ...text, description: 'A header of the target.' },
    },
    required: ['original_status', 'pc_status', 'cb_status', 'url', 'body'],
  };
}

/** A page of the target that is JSON, as it came. */
export const jsonPageSchema = {
  type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
  items: {},
  additionalProperties: true,
  description: 'With format html: a page of the target that is JSON, as it came.',
};

/** The reference to {@link jsonPageSchema}. */
export const jsonPage = { $ref: '#/components/schemas/JsonPage' };

/** The facts as headers. */
export function factHeaders(properties: Readonly<Record<string, Schema>>): Schema {
  return Object.fromEntries(
    Object.entries(properties).map(([name, { description, ...schema }]) => [
      name,
      { description, schema },
    ]),
  );
}

/**
 * A reply with a page: its bytes with the other fields in headers, or everything in one JSON
 * object.
 */
export function pageReply(
  description: string,
  properties: Readonly<Record<string, Schema>>,
  types: readonly string[],
  ...otherJson: readonly Schema[]
): Schema {
  const whole = envelope(properties);
  return {
    description,
    headers: factHeaders(properties),
    content: {
      ...Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }])),
      ...json(otherJson.length === 0 ? whole : { anyOf: [...otherJson, whole] }),
    },
  };
}
