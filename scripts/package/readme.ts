const START = `## Start

Node 22.19 or newer runs it:

\`\`\`sh
npx queued-crawler serve
\`\`\`

\`npm install --global queued-crawler\` keeps it; \`queued-crawler --help\` lists the commands.
A browser, for the JavaScript token, is not included: install Chromium or Chrome, or on Linux x64
\`npm install --global @sparticuz/chromium\`.

`;

/** What is otherwise for those who start the package, each with its text in the README of the project. */
const CHANGES: readonly (readonly [RegExp, string])[] = [
  [/^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n/gm, ''],
  [/^## Start\n.*?(?=^The first start prints)/gms, START],
  [/^- (?:`npm (?:run demo|ci)\b|Without a checkout).*\n/gm, ''],
  [/, which is included on Linux x64/g, ''],
  [/\bnpm run migrate -- /g, 'npx queued-crawler migrate '],
  [/\bnpm start -- --help\b/g, 'npx queued-crawler serve --help'],
  [/\bnpm start\b/g, 'npx queued-crawler serve'],
];

/**
 * The README of the package: that of the project, with how to start the package in place of the
 * checkout. Links to files that the package does not have become text. Throws when the README of
 * the project does not have what is changed.
 */
export function packageReadme(readme: string, isPackaged: (path: string) => boolean): string {
  const changed = CHANGES.reduce((text, [pattern, replacement]) => {
    const next = text.replace(pattern, replacement);
    if (next === text) throw new Error(`README.md has nothing like ${pattern}`);
    return next;
  }, readme);
  return changed.replaceAll(
    /\[([^\]]+)\]\((?!https?:|#)([^)#]+)[^)]*\)/g,
    (link, text: string, path: string) => (isPackaged(path) ? link : text),
  );
}
