import { expect, test } from 'vitest';
import { CrawlParametersSchema } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { PushItemSchema } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { PARAMETER_GROUPS } from '../../../src/console/pages/crawl/parameter-groups.ts';
import { PUSH_FIELDS } from '../../../src/console/pages/crawler/push-fields.ts';

test('the console has a field, with help, for every crawl parameter', () => {
  const rows = PARAMETER_GROUPS.flatMap(({ parameters }) => parameters);
  expect(rows.map(([name]) => name).sort()).toEqual(
    CrawlParametersSchema.fields.map(({ name }) => name).sort(),
  );
  expect(rows.filter(([, help]) => help === '')).toEqual([]);
});

test('the console has a field, with help, for what a push says of all its URLs', () => {
  const own = ['url', 'method', 'body', 'post_content_type', 'unique_key', 'not_before'];
  const apart = ['parameters', 'unique'];
  expect([...PUSH_FIELDS.map(({ name }) => name), ...own, ...apart].toSorted()).toEqual(
    PushItemSchema.fields.map(({ name }) => name).toSorted(),
  );
  expect(PUSH_FIELDS.filter(({ help }) => help === '')).toEqual([]);
});
