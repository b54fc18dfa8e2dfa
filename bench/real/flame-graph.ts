import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

// Makes a picture of the profiles that `npm run bench -- --real --profile DIR` wrote:
// `node bench/real/flame-graph.ts DIR FILE.svg`. Each kind of thread has a part as wide as its share of
// the samples in which it worked; each box is a function, below it what it calls.

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface Box {
  readonly name: string;
  micros: number;
  readonly children: Map<string, Box>;
}

const WIDTH = 1_400;
const ROW = 15;
const MAX_DEPTH = 16;
/** Narrower boxes are left out. */
const LEAST_PIXELS = 1.5;
const COLOURS = { ours: '#e8a33d', packages: '#c9b458', node: '#7fa7c9', native: '#b58cc4' };

const createBox = (name: string): Box => ({ name, micros: 0, children: new Map() });

function nameOf({ functionName, url }: Profile['nodes'][number]['callFrame']): string {
  const file = url.startsWith('node:') ? url : (url.split('/').at(-1) ?? '');
  const kind =
    url === ''
      ? 'native'
      : url.startsWith('node:')
        ? 'node'
        : /node_modules/.test(url)
          ? 'packages'
          : 'ours';
  return `${kind}|${functionName === '' ? '(anonymous)' : functionName} ${file}`.trim();
}

/** Adds the samples of a profile in which its thread worked. */
function add(root: Box, { nodes, samples, timeDeltas }: Profile): void {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(
    nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])),
  );
  const micros = new Map<number, number>();
  for (const [at, id] of samples.entries()) {
    micros.set(id, (micros.get(id) ?? 0) + (timeDeltas[at] ?? 0));
  }
  for (const [id, spent] of micros) {
    const path: string[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const node = byId.get(at);
      if (node !== undefined) path.unshift(nameOf(node.callFrame));
    }
    // The first is the root. The profiler's own work is no part of the service's.
    if (path.some((name) => /\|\(idle\)|inspector|profile-threads/.test(name))) continue;
    let box = root;
    box.micros += spent;
    for (const name of path.slice(1)) {
      const child = box.children.get(name) ?? createBox(name);
      box.children.set(name, child);
      child.micros += spent;
      box = child;
    }
  }
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function draw(
  box: Box,
  left: number,
  top: number,
  scale: number,
  depth: number,
  out: string[],
): void {
  const width = box.micros * scale;
  if (width < LEAST_PIXELS || depth > MAX_DEPTH) return;
  const [kind = '', label = ''] = box.name.split('|');
  const fill = COLOURS[kind as keyof typeof COLOURS] ?? '#999';
  const letters = Math.floor(width / 6.2);
  const text =
    letters < 4
      ? ''
      : `<text x="${(left + 2).toFixed(1)}" y="${top + 11}">${escaped(label.slice(0, letters))}</text>`;
  const ms = `${(box.micros / 1_000).toFixed(0)} ms`;
  out.push(
    `<g><title>${escaped(label)}: ${ms}</title><rect x="${left.toFixed(1)}" y="${top}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${fill}"/>${text}</g>`,
  );
  let at = left;
  for (const child of [...box.children.values()].toSorted((a, b) => b.micros - a.micros)) {
    draw(child, at, top + ROW, scale, depth + 1, out);
    at += child.micros * scale;
  }
}

const [folder = '', file = ''] = process.argv.slice(2);
const threads = new Map<string, Box>();
for (const name of readdirSync(folder).filter((each) => each.endsWith('.cpuprofile'))) {
  const thread = name.replace(/^\d+-/, '').replace(/(\.ts)?-\d+\.cpuprofile$/, '');
  const root = threads.get(thread) ?? createBox(`thread|${thread}`);
  threads.set(thread, root);
  add(root, JSON.parse(readFileSync(join(folder, name), 'utf8')) as Profile);
}
const roots = [...threads.values()].toSorted((a, b) => b.micros - a.micros);
const all = roots.reduce((sum, { micros }) => sum + micros, 0);
const out: string[] = [];
let left = 0;
for (const root of roots) {
  draw(root, left, 0, WIDTH / all, 0, out);
  left += (root.micros / all) * WIDTH;
  console.log(`${root.name.slice(7).padEnd(18)} ${((root.micros / all) * 100).toFixed(0)} %`);
}
const height = (MAX_DEPTH + 1) * ROW;
writeFileSync(
  file,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="10">\n<rect width="${WIDTH}" height="${height}" fill="#fff"/>\n${out.join('\n')}\n</svg>\n`,
);
