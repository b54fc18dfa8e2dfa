import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { csvLine } from '../client/csv-line.ts';
import { plainText, toPlain } from '../client/message-json.ts';
import { type Output, printable, printableValue } from './output.ts';

/** No listing of the service refuses a page of this length. */
const MAX_PAGE = 200;

/** How items are printed. */
export interface Columns<Desc extends DescMessage> {
  readonly desc: Desc;
  readonly heading: readonly string[];
  /** The columns of one item, as `toPlain` has it. */
  row(plain: Readonly<Record<string, unknown>>): readonly unknown[];
}

/** A listing of the service. */
export interface Listing<Desc extends DescMessage> extends Columns<Desc> {
  /** Reads a page; `nextPageToken` is empty on the last. */
  read(
    pageSize: number,
    pageToken: string,
  ): Promise<{ readonly items: MessageShape<Desc>[]; readonly nextPageToken: string }>;
  /** The fields to print as CSV, as `toPlain` has them; without them there is no CSV. */
  readonly csv?: readonly string[] | undefined;
  /** Tells people that there is nothing, and where else to look. */
  readonly none?: string;
}

/** Prints items: one a line in JSON, in columns otherwise. */
export async function printItems<Desc extends DescMessage>(
  output: Output,
  items: readonly MessageShape<Desc>[],
  { desc, heading, row }: Columns<Desc>,
): Promise<void> {
  const plain = items.map((item) => toPlain(desc, item));
  if (output.isJson) {
    for (const each of plain) await output.json(each);
    return;
  }
  await output.table(
    heading,
    plain.map((each) => row(each).map(printableValue)),
  );
}

/**
 * Prints up to `limit` items: as they come in JSON, in columns otherwise, page by page. Says when
 * there are more.
 */
export async function printPages<Desc extends DescMessage>(
  output: Output,
  limit: number,
  { read, csv, none, ...columns }: Listing<Desc>,
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
    const items = page.items.slice(0, left);
    left -= items.length;
    pageToken = page.nextPageToken;
    if (csv !== undefined) {
      for (const item of items) {
        const plain = toPlain(columns.desc, item);
        await asCsv(csv.map((name) => plainText(plain[name])));
      }
    } else await printItems(output, items, columns);
  } while (pageToken !== '' && left > 0);
  if (left === limit && none !== undefined && !output.isJson) output.note(none);
  if (pageToken !== '' && !output.isJson) output.note(`the first ${limit}; --limit shows more`);
}
