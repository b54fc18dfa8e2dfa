import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  CrawlerSchema,
  CreateCrawlerRequestSchema,
  UpdateCrawlerRequestSchema,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { settingFields, settingsOf, settingsRequest } from '../../../src/client/setting-fields.ts';
import {
  checkSettings,
  crawlerSettings,
  type SettingName,
  settingNames,
} from '../../../src/domain/crawler-settings.ts';

test('each setting has a form, with the bounds and the default that the service has', () => {
  expect(new Set(settingFields.map(({ path }) => path[0]))).toEqual(new Set(settingNames));
  for (const { name, kind, path, form } of settingFields) {
    expect([form.label, form.help], name).not.toContain('');
    if (kind !== 'number') continue;
    const [outer, inner] = path;
    const others = settingFields.filter((field) => field.path[0] === outer);
    const off = Object.fromEntries(
      others.map((field) => [field.path[1], { number: 0, text: '', flag: false }[field.kind]]),
    );
    const check = (value: number) => () =>
      checkSettings({ [outer]: inner === undefined ? value : { ...off, [inner]: value } });
    for (const good of [form.min, form.max]) expect(check(good), name).not.toThrow();
    for (const bad of [form.min - 1, form.max + 1]) expect(check(bad), name).toThrow(name);
    const preset = inner === undefined ? (crawlerSettings[outer as SettingName].default ?? 0) : 0;
    expect(form.preset, name).toBe(preset);
  }
});

// A new setting changes the proto, its row of the table, and the place where it acts.
test('no file of the console or the command line names a setting', () => {
  const root = join(import.meta.dirname, '../../../src');
  // Lists of crawlers show the concurrency; a push has `unique`, `uniqueFor` and `proxy` of its own.
  const elsewhere = ['concurrency', 'unique', 'uniqueFor', 'proxy'];
  const names = [...settingNames, 'maxPerHost', 'robotsTxt'].filter(
    (name) => !elsewhere.includes(name),
  );
  const namesAny = new RegExp(`\\b(${names.join('|')})\\b`);
  const files = ['console', 'cli'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(folder, file)),
  );
  const naming = files.filter((file) => namesAny.test(readFileSync(join(root, file), 'utf8')));
  expect(naming).toEqual([]);
});

test('a request changes what is given, and keeps the rest of a message', () => {
  const politeness = { maxPerHost: 2, delayMs: 500, hosts: [{ pattern: 'slow.test' }] };
  const crawler = create(CrawlerSchema, { concurrency: 7, politeness });

  expect(settingsOf(crawler)).toMatchObject({
    concurrency: 7,
    'politeness.max_per_host': 2,
    'politeness.robots_txt': false,
    unique: undefined,
  });
  const values = { concurrency: 9, 'politeness.delay_ms': 0, unique: undefined };
  expect(settingsRequest(values)).toEqual({ concurrency: 9, politeness: { delayMs: 0 } });
  const request = create(UpdateCrawlerRequestSchema, settingsRequest(values, crawler));
  expect(request.politeness).toMatchObject({ ...politeness, delayMs: 0 });
});

test('every setting of a creation can be changed, and is in what is read', () => {
  const written = CreateCrawlerRequestSchema.fields.map(({ localName }) => localName);
  for (const name of settingNames) {
    expect(written).toContain(name);
    for (const { fields } of [UpdateCrawlerRequestSchema, CrawlerSchema]) {
      expect(fields.map(({ localName }) => localName)).toContain(name);
    }
  }
});
