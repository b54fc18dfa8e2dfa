// Schemas of the document: as lists to read, and as examples to edit.

/** Depth to which members are shown; deeper ones repeat themselves. */
const MAX_DEPTH = 6;

/** An element with its text and children; text is never read as HTML. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A comment of the document: paragraphs, with code between backquotes. */
export function prose(text = '') {
  return text.split('\n\n').map((paragraph) => element('p', {}, ...spans(paragraph)));
}

/** One line of such a comment. */
export function spans(text = '') {
  return text.split('`').map((part, index) => (index % 2 === 1 ? element('code', {}, part) : part));
}

/** Follows a reference; returns the schema itself without one. */
export function resolved(document, schema = {}) {
  if (schema.$ref === undefined) return schema;
  const [, ...path] = schema.$ref.split('/');
  const target = path.reduce((from, name) => from?.[name], document) ?? {};
  return { ...target, ...(schema.description ? { description: schema.description } : {}) };
}

/** The type of a schema in a word or two. */
export function typeName(schema) {
  const { type, items, enum: words, anyOf, format, $ref } = schema;
  if (anyOf !== undefined) return anyOf.map((each) => typeName(each)).join(' or ');
  if (words !== undefined) return words.map((word) => JSON.stringify(word)).join(' | ');
  if (items !== undefined) return `list of ${typeName(items)}`;
  if ($ref !== undefined) return $ref.split('/').at(-1);
  return [type].flat().join(' or ') + (format === undefined ? '' : ` (${format})`);
}

/** The members of an object, or of the objects in a list, with theirs. */
export function members(document, schema, depth = 0) {
  const whole = resolved(document, schema);
  if (whole.anyOf !== undefined) {
    return element('div', {}, ...whole.anyOf.map((each) => members(document, each, depth)));
  }
  if (whole.items !== undefined) return members(document, whole.items, depth);
  const list = element('ul', { className: 'schema' });
  if (depth >= MAX_DEPTH) return list;
  for (const [name, of] of Object.entries(whole.properties ?? {})) {
    const described = resolved(document, of).description;
    const type = element('span', { className: 'type' }, ` ${typeName(of)} `);
    list.append(
      element(
        'li',
        {},
        element('code', {}, name),
        type,
        ...spans(described),
        members(document, of, depth + 1),
      ),
    );
  }
  return list;
}

/** A value of the schema for people to change. */
export function example(document, schema, depth = 0) {
  const whole = resolved(document, schema);
  if (whole.enum !== undefined) return whole.enum[0];
  if (whole.items !== undefined) return [example(document, whole.items, depth + 1)];
  if (whole.properties !== undefined) {
    const wanted = Object.entries(whole.properties).slice(0, depth === 0 ? 50 : 3);
    return Object.fromEntries(wanted.map(([name, of]) => [name, example(document, of, depth + 1)]));
  }
  if (whole.type === 'integer' || whole.type === 'number') return 0;
  if (whole.type === 'boolean') return false;
  return whole.type === 'object' ? {} : '';
}
