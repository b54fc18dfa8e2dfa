import { writeFileSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';

// Writes a database as SQL text: `node scripts/dump-database.ts data/queued-crawler.db FILE`. At a
// release, that of a small database of it goes to `test/fixtures/databases/VERSION.sql`.

const [source, target] = process.argv.slice(2);
if (source === undefined || target === undefined) {
  process.stderr.write('Usage: node scripts/dump-database.ts DATABASE FILE\n');
  process.exit(2);
}
using database = new DatabaseSync(source, { readOnly: true });
const version = database.prepare('PRAGMA user_version').get()?.['user_version'];
const objects = database
  .prepare(
    "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name",
  )
  .all();
const lines = [`PRAGMA user_version = ${Number(version)};`];
for (const { name, type, sql } of objects) {
  lines.push(`${String(sql)};`);
  if (type !== 'table') continue;
  for (const row of database.prepare(`SELECT * FROM "${String(name)}"`).all()) {
    const values = Object.values(row).map(literal).join(', ');
    lines.push(
      `INSERT INTO "${String(name)}" (${Object.keys(row).join(', ')}) VALUES (${values});`,
    );
  }
}
writeFileSync(target, `${lines.join('\n')}\n`);

function literal(value: SQLOutputValue): string {
  if (value === null) return 'NULL';
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}
