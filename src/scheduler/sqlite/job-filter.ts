import type { RemoveJobsOptions } from 'agenda';
import { columnOf, encodeField } from './job-row.ts';

/** A condition and its parameters. */
export interface SqlFilter {
  readonly where: string;
  readonly params: readonly unknown[];
}

/** All conditions at once; undefined when there are none. */
export function allOf(filters: readonly SqlFilter[]): SqlFilter | undefined {
  if (filters.length === 0) return undefined;
  return {
    where: filters.map(({ where }) => `(${where})`).join(' AND '),
    params: filters.flatMap(({ params }) => params),
  };
}

/** The column is one of `values`. */
export function oneOf(column: string, values: readonly unknown[], negated = false): SqlFilter {
  // One JSON parameter keeps the statement's text, and so its prepared form, the same for any number of values.
  return {
    where: `${column} ${negated ? 'NOT ' : ''}IN (SELECT value FROM json_each(?))`,
    params: [JSON.stringify(values.map(String))],
  };
}

/** Jobs whose data is `data`, or holds it when it is an object: nested objects match in part, all else exactly. */
export function dataIs(data: unknown): SqlFilter[] {
  return isPlainObject(data)
    ? pathFilters('$', data)
    : [{ where: 'data IS ?', params: [encodeField('data', data)] }];
}

function pathFilters(path: string, object: Readonly<Record<string, unknown>>): SqlFilter[] {
  return Object.entries(object).flatMap(([key, value]) => {
    const child = `${path}.${quoted(key)}`;
    return isPlainObject(value) ? pathFilters(child, value) : [pathIs(child, value)];
  });
}

function pathIs(path: string, value: unknown): SqlFilter {
  // `->` gives JSON text, which tells true from 1 and "1" from 1.
  return value === null || value === undefined
    ? { where: 'data ->> ? IS NULL', params: [path] }
    : { where: 'data -> ? = json(?)', params: [path, JSON.stringify(value)] };
}

function quoted(key: string): string {
  if (key.includes('"')) throw new Error('A job data key must not contain a quotation mark');
  return `"${key}"`;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (value === null || typeof value !== 'object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * The jobs that a `unique` object means: equality on fields of the job and on `data.` paths. Throws for a query operator,
 * which only MongoDB has.
 */
export function uniqueIs(name: string, unique: Readonly<Record<string, unknown>>): SqlFilter {
  const filters: SqlFilter[] = [{ where: 'name = ?', params: [name] }];
  for (const [path, value] of Object.entries(unique)) {
    if (isPlainObject(value) && Object.keys(value).some((key) => key.startsWith('$'))) {
      throw new Error(`A unique() constraint cannot use operators here: ${path}`);
    }
    const [field, ...keys] = path.split('.');
    const column = columnOf(field ?? '');
    if (path === 'name') continue;
    if (field === 'data' && keys.length > 0) {
      filters.push(pathIs(`$.${keys.map(quoted).join('.')}`, value));
    } else if (column !== undefined && keys.length === 0) {
      filters.push({ where: `${column} IS ?`, params: [encodeField(path, value)] });
    } else {
      throw new Error(`A unique() constraint names an unknown field: ${path}`);
    }
  }
  return allOf(filters) as SqlFilter;
}

/** The jobs that Agenda's options mean; undefined when they name none. */
export function optionsAre(options: RemoveJobsOptions): SqlFilter | undefined {
  const filters: SqlFilter[] = [];
  if (options.id) filters.push(oneOf('id', [options.id]));
  else if (options.ids?.length) filters.push(oneOf('id', options.ids));
  if (options.name) filters.push(oneOf('name', [options.name]));
  else if (options.names?.length) filters.push(oneOf('name', options.names));
  else if (options.notNames?.length) filters.push(oneOf('name', options.notNames, true));
  if (options.data !== undefined) filters.push(...dataIs(options.data));
  return allOf(filters);
}
