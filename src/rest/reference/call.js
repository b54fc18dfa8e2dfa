// Calls an operation from the page, and shows what came back.

import { element } from './schema.js';

/** Longest text that is shown; a page may have megabytes. */
const MAX_SHOWN = 200_000;

/**
 * The request of an operation with what was entered; `token` where the path or query has it. What the
 * path needs and nobody has entered is its name in upper case.
 */
export function requestOf({ verb, path, operation }, entered, body, token) {
  let target = path.replaceAll('{token}', encodeURIComponent(token));
  const query = new URLSearchParams();
  for (const { name, in: place } of operation.parameters) {
    const value = entered.get(name) ?? '';
    if (place === 'path' && name !== 'token') {
      target = target.replaceAll(`{${name}}`, encodeURIComponent(value || name.toUpperCase()));
    } else if (place === 'query' && value !== '') query.set(name, value);
  }
  const inPath = path.includes('{token}');
  const needsToken = operation.security.length > 0 && !inPath;
  const text = query.toString();
  return {
    method: verb.toUpperCase(),
    target: text === '' ? target : `${target}?${text}`,
    headers: {
      ...(needsToken && token !== '' ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
  };
}

/**
 * Sends the request and fills `output` with the reply; a stream until `signal` is aborted. `kind` names
 * the token of the console's session that it is sent with, whose place in the path has a hyphen.
 */
export async function show(request, output, signal, kind) {
  const { target, ...init } = request;
  if (kind !== undefined) {
    const { authorization: _, ...headers } = init.headers;
    init.headers = { ...headers, 'x-console-token': kind };
  }
  output.replaceChildren('…');
  try {
    const response = await fetch(target, { ...init, signal });
    const status = element(
      'p',
      { className: response.ok ? '' : 'bad' },
      `${response.status} ${response.statusText}`,
    );
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const shown = element('pre', { tabIndex: 0 });
    output.replaceChildren(status, element('pre', { tabIndex: 0 }, headers), shown);
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('image/')) await showPicture(response, shown);
    else await showText(response, shown, type);
  } catch (error) {
    if (signal.aborted) output.append(element('p', {}, 'Stopped.'));
    else output.replaceChildren(element('p', { className: 'bad' }, String(error)));
  }
}

/**
 * Shows a picture. If it is opened in a tab, its scripts run in an origin of its own, which a `blob:`
 * URL would not have.
 */
async function showPicture(response, shown) {
  const reader = new FileReader();
  const read = new Promise((resolve, reject) => {
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(reader.error));
  });
  reader.readAsDataURL(await response.blob());
  shown.replaceWith(element('img', { src: await read, alt: 'the picture', width: 480 }));
}

async function showText(response, shown, type) {
  let text = '';
  const decoder = new TextDecoder();
  for (let reader = response.body?.getReader(), part = await reader?.read(); part && !part.done; ) {
    text += decoder.decode(part.value, { stream: true });
    shown.textContent = text.slice(0, MAX_SHOWN);
    if (text.length > MAX_SHOWN) break;
    part = await reader.read();
  }
  if (text.length > MAX_SHOWN) shown.append(`\n… the rest of it is not shown`);
  else if (/^application\/json\b/.test(type)) shown.textContent = indented(text);
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // A page that only says that it is JSON.
    return text;
  }
}
