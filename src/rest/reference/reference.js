// The document of the API as a page: every operation to read, to find and to call.

import { requestOf, show } from './call.js';
import { LANGUAGES } from './examples.js';
import { element, example, members, prose, resolved, spans, typeName } from './schema.js';
import { followSession, givenToken, sessionToken } from './sign-in.js';

const contents = document.querySelector('#contents');
const main = document.querySelector('#operations');
const language = document.querySelector('#language');
const filter = document.querySelector('#filter');

const api = await (await fetch('/openapi.json')).json();
document.title = `${api.info.title} ${api.info.version}: API reference`;

const operations = Object.entries(api.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ verb, path, operation })),
);
/** The token of examples, which they replace by a variable. */
const STAND_IN = '__TOKEN__';
const rows = [];
/** Writes the examples anew that are shown. */
const examples = [];
const writeExamples = () => examples.forEach((write) => write());
language.append(...Object.keys(LANGUAGES).map((name) => new Option(name)));
language.addEventListener('change', writeExamples);
await followSession(writeExamples);

main.append(...prose(api.info.description));
for (const { name, description, 'x-displayName': title = name } of api.tags) {
  const own = operations.filter(({ operation }) => operation.tags.includes(name));
  if (own.length === 0) continue;
  main.append(element('h2', {}, title), ...prose(description));
  contents.append(element('h2', {}, title));
  for (const each of own) addOperation(each);
}
if (location.hash !== '') document.getElementById(location.hash.slice(1))?.setAttribute('open', '');

const address = new URL(location.href);
filter.value = address.searchParams.get('find') ?? '';
if (filter.value !== '') find();
filter.addEventListener('input', () => {
  find();
  if (filter.value === '') address.searchParams.delete('find');
  else address.searchParams.set('find', filter.value);
  history.replaceState(null, '', address.pathname + address.search + location.hash);
});

function find() {
  const wanted = filter.value.trim().toLowerCase();
  for (const { text, parts } of rows) {
    for (const part of parts) part.hidden = !text.includes(wanted);
  }
}

function addOperation(each) {
  const { verb, path, operation } = each;
  const id = operation.operationId;
  const details = element(
    'details',
    { className: 'operation', id },
    element(
      'summary',
      {},
      element('span', { className: 'verb' }, verb.toUpperCase()),
      element('span', { className: 'path' }, path),
      element('span', { className: 'about' }, ...spans(operation.summary)),
    ),
  );
  // Most operations are never opened.
  const fill = () => details.append(...operationBody(each));
  details.addEventListener('toggle', fill, { once: true });
  const link = element('a', { href: `#${id}`, title: id }, linkText(each));
  link.addEventListener('click', () => {
    details.open = true;
  });
  main.append(details);
  contents.append(link);
  const text = `${verb} ${path} ${id} ${operation.summary} ${operation.description ?? ''}`;
  rows.push({ text: text.toLowerCase(), parts: [details, link] });
}

/** How the contents name an operation: what is after the token of its path says enough. */
function linkText({ verb, path }) {
  return `${verb.toUpperCase()} ${path.replace('/{token}', '')}`;
}

function operationBody(each) {
  const { operation } = each;
  const inputs = new Map();
  const parameters = operation.parameters.filter(({ name }) => name !== 'token');
  const table = element('table', {}, ...parameters.map((of) => parameterRow(of, inputs)));
  const schema = operation.requestBody?.content?.['application/json']?.schema;
  const body =
    operation.requestBody === undefined
      ? undefined
      : element('textarea', {
          spellcheck: false,
          ariaLabel: 'Body',
          value: schema === undefined ? '' : JSON.stringify(example(api, schema), undefined, 2),
        });
  const parts = [...prose(operation.description)];
  if (parameters.length > 0) parts.push(element('h3', {}, 'Parameters'), table);
  if (body !== undefined) {
    parts.push(element('h3', {}, 'Body'), body);
    if (schema !== undefined) parts.push(foldedMembers('Members of the body', schema));
  }
  return [...parts, element('h3', {}, 'Replies'), replies(operation), tryIt(each, inputs, body)];
}

function parameterRow({ name, in: place, required, description, schema }, inputs) {
  const words = schema.enum;
  const input =
    words === undefined
      ? element('input', { spellcheck: false, ariaLabel: name })
      : element('select', { ariaLabel: name }, ...['', ...words].map((word) => new Option(word)));
  inputs.set(name, input);
  const must = required === true ? ', required' : '';
  return element(
    'tr',
    {},
    element(
      'td',
      {},
      element('code', {}, name),
      element('div', { className: 'type' }, `${place}${must}, ${typeName(schema)}`),
    ),
    element('td', {}, ...spans(description)),
    element('td', {}, input),
  );
}

function replies(operation) {
  const list = Object.entries(operation.responses).map(([status, of]) => {
    const reply = resolved(api, of);
    const line = element('li', {}, element('code', {}, status), ' ', ...spans(reply.description));
    for (const [type, { schema }] of Object.entries(reply.content ?? {})) {
      line.append(element('span', { className: 'type' }, ` ${type}`));
      if (status === '200' && schema !== undefined) line.append(members(api, schema));
    }
    return line;
  });
  return element('ul', { className: 'schema' }, ...list);
}

function foldedMembers(title, schema) {
  return element('details', {}, element('summary', {}, title), members(api, schema));
}

function tryIt(each, inputs, body) {
  const output = element('div', { ariaLive: 'polite' });
  const command = element('pre', { tabIndex: 0 });
  const send = element('button', { type: 'button' }, 'Call');
  const stop = element('button', { type: 'button', hidden: true }, 'Stop');
  let calling = new AbortController();
  const request = (token = givenToken()) => {
    const entered = new Map([...inputs].map(([name, { value }]) => [name, value]));
    return requestOf(each, entered, body === undefined ? undefined : body.value, token);
  };
  const write = () => {
    const make = LANGUAGES[language.value];
    command.textContent = make(request(STAND_IN), location.origin, STAND_IN);
  };
  const copy = element('button', { type: 'button' }, 'Copy');
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(command.textContent);
    copy.textContent = 'Copied';
    setTimeout(() => (copy.textContent = 'Copy'), 2_000);
  });
  const form = element(
    'div',
    {},
    element('h3', {}, 'Try it'),
    command,
    copy,
    ' ',
    send,
    ' ',
    stop,
    output,
  );
  for (const input of [...inputs.values(), ...(body === undefined ? [] : [body])]) {
    input.addEventListener('input', write);
  }
  stop.addEventListener('click', () => calling.abort());
  send.addEventListener('click', async () => {
    calling.abort();
    calling = new AbortController();
    stop.hidden = false;
    await show(request(), output, calling.signal, sessionToken());
    stop.hidden = true;
  });
  examples.push(write);
  write();
  return form;
}
