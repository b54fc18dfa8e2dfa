import { readFileSync } from 'node:fs';
import type { Adapter } from '../adapter.ts';
import { SAME_ORIGIN } from '../reply.ts';

/** Scripts, styles and calls of this origin alone, and the pictures that calls answer. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const files = [
  ['/docs', 'reference.html', 'text/html; charset=utf-8'],
  ['/docs/reference.js', 'reference.js', 'text/javascript; charset=utf-8'],
  ['/docs/call.js', 'call.js', 'text/javascript; charset=utf-8'],
  ['/docs/examples.js', 'examples.js', 'text/javascript; charset=utf-8'],
  ['/docs/sign-in.js', 'sign-in.js', 'text/javascript; charset=utf-8'],
  ['/docs/schema.js', 'schema.js', 'text/javascript; charset=utf-8'],
  ['/docs/reference.css', 'reference.css', 'text/css; charset=utf-8'],
] as const;

/** `/docs`: the document of the API to read and to try, in a page that loads nothing from elsewhere. */
export function referencePage(): Adapter[] {
  return files.map(([path, name, contentType]) => {
    let text: string | undefined;
    return {
      path,
      methods: ['GET'],
      async handle() {
        text ??= readFileSync(new URL(name, import.meta.url), 'utf8');
        return {
          status: 200,
          headers: {
            'content-type': contentType,
            'content-security-policy': POLICY,
            'x-content-type-options': 'nosniff',
            'referrer-policy': 'no-referrer',
            ...SAME_ORIGIN,
            'cache-control': 'no-cache',
          },
          body: text,
        };
      },
    };
  });
}
