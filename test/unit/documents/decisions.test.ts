import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../../../docs/decisions');

describe.each(globSync('*.md', { cwd: folder }).toSorted())('decision %s', (name) => {
  const text = readFileSync(join(folder, name), 'utf8');
  const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);

  test('has context, decision and consequences, in this order', () => {
    const wanted = ['Context', 'Decision', 'Consequences'];
    expect(headings.filter((heading) => wanted.includes(heading ?? ''))).toEqual(wanted);
  });

  test('is short', () => {
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
  });
});
