import { STATUS_CODES } from 'node:http';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { CrawledPage } from '../client/client.ts';
import { csvLine } from '../client/csv-line.ts';
import { plainText } from '../client/message-json.ts';
import { manifest } from './manifest.ts';
import { bodyJson, resultFacts } from './page-file.ts';

/** The formats of an export. */
export type ExportFormat = 'ndjson' | 'csv' | 'warc';

/** How results become bytes of a file. */
interface Writer {
  /** What the file begins with. */
  begin(gzip: boolean): Promise<Uint8Array>;
  /** One result; undefined for one that the format cannot have. */
  write(page: CrawledPage, gzip: boolean): Promise<Uint8Array | undefined>;
}

/** The columns of a CSV file; `metadata` and `failure` are empty where they are absent. */
const COLUMNS = [
  'rid',
  'pushed_url',
  'url',
  'cb_status',
  'original_status',
  'failure',
  'content_type',
  'size',
  'stored_at',
  'crawled_at',
  'batch',
  'again_of',
  'metadata',
] as const;

/** The writers of all formats. */
export const EXPORT_FORMATS: Readonly<Record<ExportFormat, Writer>> = {
  ndjson: {
    begin: async () => new Uint8Array(0),
    write: async (page) =>
      Buffer.from(`${JSON.stringify({ ...resultFacts(page), ...bodyJson(page.body) })}\n`),
  },
  csv: {
    begin: async () => Buffer.from(csvLine(COLUMNS)),
    async write(page) {
      const facts = resultFacts(page);
      return Buffer.from(csvLine(COLUMNS.map((name) => plainText(facts[name]))));
    },
  },
  warc: {
    async begin(gzip) {
      const { WARCRecord, WARCSerializer } = await import('warcio');
      const software = `queued-crawler/${manifest.version}`;
      const info = { software, format: 'WARC File Format 1.1' };
      const record = WARCRecord.createWARCInfo({ warcVersion: 'WARC/1.1' }, info);
      return WARCSerializer.serialize(record, { gzip });
    },
    write: warcRecord,
  },
};

/** Headers that were true of the bytes on the wire, and are not of the page as it is stored. */
const OF_THE_WIRE = new Set([
  'content-encoding',
  'content-length',
  'content-type',
  'transfer-encoding',
]);

/** The response as a record, with the headers that the push asked for. None without a response. */
async function warcRecord(page: CrawledPage, gzip: boolean): Promise<Uint8Array | undefined> {
  const { url, originalStatus: status, body, contentType, originalHeaders, rid } = page;
  if (status === 0 || (page.failure === 'queue_timeout' && status === 504)) return undefined;
  const { WARCRecord, WARCSerializer } = await import('warcio');
  const given = Object.entries(originalHeaders)
    .map(([name, value]) => [name.replaceAll('_', '-'), value.replaceAll(/[\r\n]+/g, ' ')] as const)
    .filter(([name]) => !OF_THE_WIRE.has(name));
  const at = page.storedAt === undefined ? new Date() : timestampDate(page.storedAt);
  const record = WARCRecord.create(
    {
      url,
      type: 'response',
      date: page.crawledAt ?? at.toISOString(),
      warcVersion: 'WARC/1.1',
      warcHeaders: { 'X-Queued-Crawler-Rid': rid },
      statusline: `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(),
      httpHeaders: Object.fromEntries([
        ...given,
        ['content-type', contentType],
        ['content-length', String(body.byteLength)],
      ]),
    },
    [body],
  );
  return WARCSerializer.serialize(record, { gzip });
}
