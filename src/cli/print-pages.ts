import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { csvLine } from '../client/csv-line.ts';
import { plainText, toPlain } from '../client/message-json.ts';
import { type Output, printable } from './output.ts';

/** No listing of the service refuses a page of this length. */
const MAX_PAGE = 200;

/** A listing of the service. */
export interface Listing<Desc extends DescMessage> {
  readonly desc: Desc;
  /** Reads a page; `nextPageToken` is empty on the last. */
  read(
    pageSize: number,
    pageToken: string,
  ): Promise<{ readonly items: MessageShape<Desc>[]; readonly nextPageToken: string }>;
  readonly heading: readonly string[];
  /** The fields to print as CSV, as `toPlain` has them; without them there is no CSV. */
  readonly csv?: readonly string[] | undefined;
  /** Tells people that there is nothing, and where else to look. */
  readonly none?: string;
  /** The columns of one item, as `toPlain` has it. */
  row(plain: Readonly<Record<string, unknown>>): readonly unknown[];
}

/**
 * Prints up to `limit` items: as they come in JSON, in columns otherwise, page by page. Says when
 * there are more.
 */
export async function printPages<Desc extends DescMessage>(
  output: Output,
  limit: number,
  { desc, read, heading, csv, row, none }: Listing<Desc>,
): Promise<void> {
  let left = limit;
  let pageToken = '';
  const asCsv = (cells: readonly string[]) => {
    const shown = output.isTerminal ? cells.map(printable) : cells;
    return output.line(csvLine(shown).slice(0, -2));
  };
  if (csv !== undefined) await asCsv(csv);
  do {
    const page = await read(Math.min(left, MAX_PAGE), pageToken);
    const plain = page.items.slice(0, left).map((item) => toPlain(desc, item));
    left -= plain.length;
    pageToken = page.nextPageToken;
    if (csv !== undefined) {
      for (const each of plain) await asCsv(csv.map((name) => plainText(each[name])));
    } else if (output.isJson) for (const each of plain) await output.json(each);
    else {
      const rows = plain.map((each) => row(each).map((value) => printable(plainText(value))));
      await output.table(heading, rows);
    }
  } while (pageToken !== '' && left > 0);
  if (left === limit && none !== undefined && !output.isJson) output.note(none);
  if (pageToken !== '' && !output.isJson) output.note(`the first ${limit}; --limit shows more`);
}
