import type { Template } from './template.ts';

interface Leaf<Route> {
  readonly source: string;
  readonly route: Route;
}

interface Node<Route> {
  readonly literals: Map<string, Node<Route>>;
  any: Node<Route> | undefined;
  rest: Node<Route> | undefined;
  /** By `METHOD` or `METHOD:verb`. */
  readonly leaves: Map<string, Leaf<Route>>;
}

/**
 * Routes by path and HTTP method. Where several patterns match, a literal segment beats `*`, which
 * beats `**`.
 */
export interface Trie<Route> {
  /** Throws when a pattern that matches exactly the same paths already has this method. */
  add(method: string, template: Template, route: Route): void;
  /** `segments` are still percent-encoded. */
  find(method: string, segments: readonly string[]): Route | undefined;
  /** The methods of the path, sorted; empty for an unknown path. */
  methods(segments: readonly string[]): string[];
}

/** Makes an empty {@link Trie}. */
export function createTrie<Route>(): Trie<Route> {
  const root = createNode<Route>();

  return {
    add(method, template, route) {
      let node = root;
      for (const segment of template.segments) {
        if (segment.kind === 'literal') {
          let next = node.literals.get(segment.text);
          if (next === undefined) node.literals.set(segment.text, (next = createNode()));
          node = next;
        } else {
          node = node[segment.kind] ??= createNode();
        }
      }
      const key = template.verb === '' ? method : `${method}:${template.verb}`;
      const other = node.leaves.get(key);
      if (other !== undefined) {
        throw new Error(`${method} ${template.source} is bound twice, also by ${other.source}`);
      }
      node.leaves.set(key, { source: template.source, route });
    },
    find(method, segments) {
      const split = splitVerb(segments);
      if (split !== undefined) {
        const key = `${method}:${split.verb}`;
        const found = search(root, split.segments, 0, (node) => node.leaves.get(key));
        if (found !== undefined) return found.route;
      }
      return search(root, segments, 0, (node) => node.leaves.get(method))?.route;
    },
    methods(segments) {
      const found = new Set<string>();
      const collect = (suffix: string) => (node: Node<Route>) => {
        for (const key of node.leaves.keys()) {
          const [method = '', verb = ''] = key.split(':');
          if (verb === suffix) found.add(method);
        }
        return undefined;
      };
      search(root, segments, 0, collect(''));
      const split = splitVerb(segments);
      if (split !== undefined) search(root, split.segments, 0, collect(split.verb));
      return [...found].sort();
    },
  };
}

function createNode<Route>(): Node<Route> {
  return { literals: new Map(), any: undefined, rest: undefined, leaves: new Map() };
}

function splitVerb(segments: readonly string[]) {
  const last = segments.at(-1) ?? '';
  const colon = last.lastIndexOf(':');
  if (colon < 0) return undefined;
  return {
    verb: last.slice(colon + 1),
    segments: [...segments.slice(0, -1), last.slice(0, colon)],
  };
}

/**
 * Returns the first result of `visit`, trying the matching nodes from the most to the least
 * specific.
 */
function search<Route, Found>(
  node: Node<Route>,
  segments: readonly string[],
  depth: number,
  visit: (node: Node<Route>) => Found | undefined,
): Found | undefined {
  const segment = segments[depth];
  if (segment === undefined) return visit(node) ?? (node.rest && visit(node.rest));
  const literal = node.literals.get(segment);
  const found = literal && search(literal, segments, depth + 1, visit);
  if (found !== undefined) return found;
  if (node.any !== undefined && segment !== '') {
    const inAny = search(node.any, segments, depth + 1, visit);
    if (inAny !== undefined) return inAny;
  }
  return node.rest && visit(node.rest);
}
