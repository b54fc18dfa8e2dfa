import { expect, test } from 'vitest';
import { CrawlParametersSchema } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { PARAMETER_GROUPS } from '../../../src/console/pages/crawl/parameter-groups.ts';

test('the console has a field, with help, for every crawl parameter', () => {
  const rows = PARAMETER_GROUPS.flatMap(({ parameters }) => parameters);
  expect(rows.map(([name]) => name).sort()).toEqual(
    CrawlParametersSchema.fields.map(({ name }) => name).sort(),
  );
  expect(rows.filter(([, help]) => help === '')).toEqual([]);
});
