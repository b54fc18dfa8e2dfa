import type { App } from './app/app.ts';
import type { Config } from './config/config.ts';

/**
 * Prints to `output` where the service listens and, after the first start, the tokens and commands
 * that work when pasted.
 */
export function printWelcome(
  app: Pick<App, 'url' | 'newTokens' | 'database'>,
  config: Pick<Config, 'dataDir' | 'role' | 'normalToken' | 'javascriptToken'>,
  output: { write(text: string): unknown },
): void {
  const database = app.database === 'embedded' ? `embedded, in ${config.dataDir}` : 'MongoDB';
  const lines = ['', `  Queued crawler: ${app.url}`];
  if (config.role !== 'worker') lines.push(`  Console:        ${app.url}/console`);
  lines.push(`  Database:       ${database}`);
  if (config.role !== 'all') lines.push(`  Role:           ${config.role}`);
  const tokens = app.newTokens;
  if (tokens !== undefined) {
    // The operator knows the tokens that he has set, and logs may keep this output.
    const [normal, javascript] = [
      config.normalToken === '' ? tokens.normal : undefined,
      config.javascriptToken === '' ? tokens.javascript : undefined,
    ];
    const usable = normal ?? '$NORMAL_TOKEN';
    lines.push(
      '',
      normal === undefined && javascript === undefined
        ? '  Made account "default".'
        : '  Made account "default". Its tokens are shown this once; keep them:',
      `  Normal token:     ${normal ?? 'as NORMAL_TOKEN says'}`,
      `  JavaScript token: ${javascript ?? 'as JAVASCRIPT_TOKEN says'}`,
      '',
      '  Try it: make a crawler, push a URL, read the result.',
      `  curl -X POST ${app.url}/crawler/${usable} -H 'content-type: application/json' -d '{"name":"first"}'`,
      `  curl "${app.url}/?token=${usable}&crawler=first&callback=true&url=https%3A%2F%2Fexample.com%2F"`,
      `  curl --compressed "${app.url}/storage?token=${usable}&rid=RID"   # RID: what the push answered`,
    );
  }
  output.write(`${lines.join('\n')}\n\n`);
}
