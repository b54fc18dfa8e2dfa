/** What is read of an OpenAPI document. */
interface Document {
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<
        string,
        { readonly schema?: { readonly properties?: Readonly<Record<string, unknown>> } }
      >
    >;
  };
}

/** More names than this are left to the documents that list them all. */
const MAX_NAMES = 12;

/** The text of `docs/rest.md`. */
export function restDocument(document: Document): string {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, operation]) => ({ verb, path, operation })),
  );
  const sections = document.tags.map(({ name, description = '' }) => {
    const rows = operations
      .filter(({ operation }) => operation.tags.includes(name))
      .map(({ verb, path, operation }) => {
        const place = `\`${verb.toUpperCase()} ${path}\``;
        return `| ${place} | ${operation.operationId} | ${operation.summary} | ${inputs(verb, operation)} |`;
      });
    const [about = ''] = description.split('\n\n');
    return `## ${name}\n\n${about}\n\n| call | operation | does | takes |\n|---|---|---|---|\n${rows.join('\n')}`;
  });
  return `# REST

Every call of the REST API; \`/backup\` and \`/log-level\` are for operators and in [operate.md](operate.md). A running service has all of it with every member, to read and to try, at \`/docs\`, and as an OpenAPI 3.1 document at \`/openapi.json\`
([openapi.json](openapi.json)). Tokens go into the path where it has \`{token}\`, else into the query (\`?token=\`) or \`Authorization: Bearer\`; what a crawl takes is in
[parameters.md](parameters.md), how calls are refused in [errors.md](errors.md).
GET calls take the rest in the query. Of the others the last column says what goes into the query (\`?host=shop.example\`), and what is a member of the JSON body.
A parameter with two different values is refused, unless it is a list: a list is given by repeating it, \`crawlers=shop&crawlers=feed\`.
Parameters and members of the body that are not known are ignored, but a misspelt or misplaced member of the body is refused (\`unknown_member\`).

${sections.join('\n\n')}

This list is made from \`proto/\` and \`scripts/openapi\`: \`npm run docs\`.
`;
}

function inputs(verb: string, { parameters, requestBody }: Operation): string {
  const query = parameters.filter((each) => each.in === 'query').map(({ name }) => name);
  const schema = requestBody?.content['application/json']?.schema;
  const members = Object.keys(schema?.properties ?? {});
  const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  const queryText =
    query.length > MAX_NAMES
      ? 'the [parameters](parameters.md) of a crawl, and those of a push'
      : list(query);
  if (verb === 'get') return queryText;
  return [query.length > 0 && `query: ${queryText}`, members.length > 0 && `body: ${list(members)}`]
    .filter((part) => part !== false)
    .join('; ');
}
