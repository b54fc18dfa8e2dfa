import type { TokenType } from './account.ts';
import { invalidField } from './errors.ts';
import {
  type ParameterKind,
  type ParameterRows,
  type ParameterValue,
  parameterTable,
} from './parameter-table.ts';
import { MAX_PICTURE_PIXELS, requestedScreen, screenPixels } from './screens.ts';

/**
 * How one URL is crawled; an absent parameter has its default. The names are those of the API, so
 * that the stored form, the REST query and the proto need no mapping.
 */
export type CrawlParameters = {
  readonly [Name in keyof ParameterRows]?: ParameterValue<ParameterRows[Name][0]>;
};

/** Most pushes have no parameters. */
const NONE: CrawlParameters = {};

const isAbsent = (value: unknown): boolean =>
  value === undefined || value === '' || value === false;

/**
 * Names of the given parameters that have no effect with this token: those of the browser with the
 * Normal one. Clients that were written for the reference service send them with either.
 */
export function ignoredParameters(
  input: Readonly<Record<string, unknown>>,
  tokenType: TokenType,
): string[] {
  if (tokenType === 'javascript') return [];
  return parameterTable
    .filter(({ name, javascript }) => javascript && !isAbsent(input[name]))
    .map(({ name }) => name);
}

/**
 * Validates parameters by their API names. Undefined, an empty text and false count as absent, and
 * so do those of {@link ignoredParameters}. Throws `invalid` naming the parameter and what is allowed.
 */
export function parseCrawlParameters(
  input: Readonly<Record<string, unknown>>,
  tokenType: TokenType,
): CrawlParameters {
  if (Object.keys(input).length === 0) return NONE;
  const parsed: Record<string, unknown> = {};
  for (const { name, kind, javascript } of parameterTable) {
    const from = name === 'set_cookies' ? cookiesName(input) : name;
    const value = input[from];
    if (isAbsent(value) || (javascript && tokenType === 'normal')) continue;
    parsed[name] = checkValue(from, kind, value);
  }
  assertDrawable(parsed);
  assertReadable(parsed);
  assertOneSession(parsed);
  return parsed;
}

/** Which of its two names a call has given for its cookies. Throws for both with different values. */
function cookiesName({ set_cookies: set, cookies }: Readonly<Record<string, unknown>>) {
  if (isAbsent(cookies)) return 'set_cookies';
  if (isAbsent(set) || set === cookies) return 'cookies';
  throw invalidField('cookies', 'cookies is another name of set_cookies: give one of them.');
}

/** Throws when cookies are to be kept in two places. */
function assertOneSession({ session, cookies_session: jar }: CrawlParameters): void {
  if (session === undefined || jar === undefined) return;
  throw invalidField('session', 'session cannot be combined with cookies_session.');
}

/** Throws when a PDF is asked for, and what only a page has. */
function assertReadable({ pdf, format, scraper, autoparse }: CrawlParameters): void {
  if (pdf !== true) return;
  if (format === 'md' || scraper !== undefined || autoparse === true) {
    throw invalidField('pdf', 'pdf cannot be combined with format md, scraper or autoparse.');
  }
}

/** Throws when the viewport has more pixels than a screenshot may have. */
function assertDrawable(parameters: CrawlParameters): void {
  if (parameters.screenshot !== true) return;
  const screen = requestedScreen(parameters);
  if (screenPixels(screen) <= MAX_PICTURE_PIXELS) return;
  const { width, height, scale } = screen;
  throw invalidField(
    parameters.height === undefined ? 'width' : 'height',
    `width and height: a picture of ${width} x ${height} at ${scale} pixels for one of CSS has more than ${MAX_PICTURE_PIXELS} pixels.`,
  );
}

function checkValue(name: string, kind: ParameterKind, value: unknown): unknown {
  switch (kind.type) {
    case 'boolean':
      if (typeof value === 'boolean') return value;
      throw invalidField(name, `${name} must be true or false.`);
    case 'integer':
      if (Number.isInteger(value) && Number(value) >= kind.min && Number(value) <= kind.max) {
        return value;
      }
      throw invalidField(name, `${name} must be a whole number from ${kind.min} to ${kind.max}.`);
    case 'word':
      if (typeof value === 'string' && kind.words.includes(value)) return value;
      throw invalidField(
        name,
        `${name} must be one of ${kind.words.join(', ')}${nearestWord(kind, value)}.`,
      );
    case 'text':
      return checkText(name, kind, value);
  }
}

function nearestWord(kind: Extract<ParameterKind, { type: 'word' }>, value: unknown): string {
  const nearest = typeof value === 'string' ? kind.nearest?.(value) : undefined;
  return nearest === undefined ? '' : `; nearest to the name given is ${nearest}`;
}

function checkText(
  name: string,
  kind: Extract<ParameterKind, { type: 'text' }>,
  value: unknown,
): string {
  if (typeof value !== 'string') throw invalidField(name, `${name} must be text.`);
  if (value.length > kind.maxLength) {
    throw invalidField(name, `${name} must be at most ${kind.maxLength} characters.`);
  }
  try {
    return kind.check === undefined ? value : kind.check(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'is not valid';
    throw invalidField(name, `${name} ${reason}.`);
  }
}
