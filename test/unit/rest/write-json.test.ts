import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { RequestInfoSchema } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { compileMessageWriter } from '../../../src/rest/write-json.ts';

test.each([
  [1_795_485_862, '1795485862.0'],
  [1_795_485_862.5, '1795485862.5'],
  [1_795_485_862.001, '1795485862.001'],
  [0, '0.0'],
  [-3, '-3.0'],
  [1e300, '1e+300'],
  [Number.NaN, '"NaN"'],
])('a number of the type double has a fraction: %s', (createdAt, text) => {
  const write = compileMessageWriter(RequestInfoSchema);
  const json = write(create(RequestInfoSchema, { rid: 'a', createdAt }));
  expect(json).toContain(`"created_at":${text}`);
});
