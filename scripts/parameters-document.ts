import type { Parameter } from '../src/domain/parameter-table.ts';

/** The text of `docs/parameters.md` for a table of parameters. */
export function parametersDocument(parameters: readonly Parameter[]): string {
  const rows = parameters.map(
    ({ name, kind, fallback, javascript, meaning }) =>
      `| \`${name}\` | ${allowedValues(kind)} | ${fallback === '' ? '' : `\`${fallback}\``} | ${javascript ? 'JavaScript' : 'any'} | ${meaning.replaceAll('|', '\\|')} |`,
  );
  return `# Crawl parameters

Every crawl takes these, queued or inline: in the query of a push or an inline crawl, and as fields of \`parameters\` in a batch, a
stream or an RPC. They are checked when the URL is pushed (422 names the parameter and what is allowed), stored with the
job, and applied to each of its crawls. In a query, booleans may be \`true\`, \`True\` or \`1\`; in JSON they are true and
false. \`cookies\` is another name of \`set_cookies\`.

| parameter | values | default | token | meaning |
|---|---|---|---|---|
${rows.join('\n')}

This table is made from the one in \`src/domain/parameter-table.ts\` that the service itself checks by: \`npm run docs\`.
`;
}

function allowedValues(kind: Parameter['kind']): string {
  switch (kind.type) {
    case 'boolean':
      return 'true, false';
    case 'integer':
      return `${kind.min} to ${kind.max} ${kind.unit}`;
    case 'word':
      return kind.words.map((word) => `\`${word}\``).join(', ');
    case 'text':
      return `text, up to ${kind.maxLength} characters`;
  }
}
