// The same request as a command or a program, with the token and the address as variables.

/** Languages of the examples. */
export const LANGUAGES = { curl, Node: node, Python: python };

/** The parts of the request with `$TOKEN` in place of the token. */
function hidden({ target, headers, ...rest }, origin, token) {
  const hide = (text) =>
    token === '' ? text : text.replaceAll(encodeURIComponent(token), '$TOKEN');
  const named = Object.entries(headers).map(([name, value]) => [name, hide(value)]);
  return { ...rest, url: origin + hide(target), headers: named };
}

/** The request as a curl command. */
export function curl(request, origin, token) {
  const { method, url, headers, body } = hidden(request, origin, token);
  const quoted = (text) => `"${text.replace(/[\\"`]/g, '\\$&')}"`;
  return [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    quoted(url),
    ...headers.flatMap(([name, value]) => ['-H', quoted(`${name}: ${value}`)]),
    ...(body === undefined ? [] : ['-d', `'${body.replaceAll("'", "'\\''")}'`]),
  ].join(' ');
}

/** The request as a module of Node, without dependencies. */
export function node(request, origin, token) {
  const { method, url, headers, body } = hidden(request, origin, token);
  const text = (value) => {
    const literal = JSON.stringify(value);
    if (!value.includes('$TOKEN')) return literal;
    return `\`${literal.slice(1, -1).replaceAll('\\"', '"').replaceAll('`', '\\`')}\``.replaceAll(
      '$TOKEN',
      '${process.env.TOKEN}',
    );
  };
  const options = [
    ...(method === 'GET' ? [] : [`method: ${text(method)}`]),
    ...(headers.length === 0
      ? []
      : [
          `headers: { ${headers.map(([name, value]) => `${text(name)}: ${text(value)}`).join(', ')} }`,
        ]),
    ...(body === undefined ? [] : [`body: ${text(body)}`]),
  ];
  const given = options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`;
  return `const response = await fetch(${text(url)}${given});
console.log(response.status, await response.text());`;
}

/** The request as a program of Python 3, without dependencies. */
export function python(request, origin, token) {
  const { method, url, headers, body } = hidden(request, origin, token);
  const text = (value) => {
    const parts = value.split('$TOKEN').map((part) => JSON.stringify(part));
    return parts.join(' + os.environ["TOKEN"] + ').replaceAll(/^"" \+ | \+ ""$/g, '');
  };
  const given = [
    text(url),
    `method=${text(method)}`,
    ...(headers.length === 0
      ? []
      : [
          `headers={${headers.map(([name, value]) => `${text(name)}: ${text(value)}`).join(', ')}}`,
        ]),
    ...(body === undefined ? [] : [`data=${text(body)}.encode()`]),
  ];
  return `import os, urllib.error, urllib.request

request = urllib.request.Request(
    ${given.join(',\n    ')},
)
try:
    with urllib.request.urlopen(request) as response:
        print(response.status, response.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`;
}
