import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { CrawlTrySchema } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { PushItemSchema } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { callbackHeadersText } from '../domain/callback-headers.ts';
import type { JobTry } from '../domain/job-try.ts';
import type { JobLife, SamePush } from '../service/reads/job-life.ts';
import { toParametersMessage } from './crawl-parameters.ts';
import { optionalTimestamp } from './crawler-messages.ts';

/** What happened to a job, on the wire. */
export function toLifeMessage(life: JobLife) {
  return {
    pushedAt: timestampFromDate(life.pushedAt),
    tries: life.tries.map(toTryMessage),
    waitsFor: life.waitsFor ?? '',
    sentHeaders: life.sentHeaders.map(([name, value]) => ({ name, value })),
    waitsUntil: optionalTimestamp(life.waitsUntil),
    push: life.push && toPushItem(life.push),
  };
}

function toTryMessage({
  startedAt,
  durationMs,
  originalStatus,
  failure,
  steps,
  rung,
  detail,
}: JobTry): MessageInitShape<typeof CrawlTrySchema> {
  return {
    startedAt: timestampFromDate(startedAt),
    durationMs,
    originalStatus,
    steps: steps.map(([name, ms]) => ({ name, durationMs: ms })),
    ...(failure === '' ? {} : { failure }),
    rung,
    detail,
  };
}

function toPushItem(push: SamePush): MessageInitShape<typeof PushItemSchema> {
  const { url, method, body, contentType, parameters, callbackHeaders } = push;
  return {
    url,
    method,
    body,
    postContentType: contentType,
    parameters: parameters && toParametersMessage(parameters),
    callbackHeaders: callbackHeaders && callbackHeadersText(callbackHeaders),
    priority: push.priority,
    queueTimeout: push.queueTimeout,
    metadata: push.metadata,
  };
}
