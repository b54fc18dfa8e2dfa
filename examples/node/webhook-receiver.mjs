import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace('whsec_', ''), 'base64');
// By an empty key, as of a secret that is no base64, anybody could sign.
if (key.length < 24) throw new Error('WEBHOOK_SECRET must be the webhook_secret of the crawler');
const seen = new Set();
const TEST_RID = '0'.repeat(24);

function isGenuine(headers, body) {
  const {
    'webhook-id': id,
    'webhook-timestamp': sentAt,
    'webhook-signature': signatures,
  } = headers;
  // An old delivery may have been recorded and sent again by somebody else.
  if (!(Math.abs(Date.now() / 1_000 - Number(sentAt)) < 300)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${sentAt}.`).update(body).digest();
  return (signatures ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

async function receive(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const sent = Buffer.concat(chunks);
  const { headers } = request;
  if (request.method !== 'POST' || !isGenuine(headers, sent)) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(204).end();
  const body = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
  if (headers['webhook-results'] !== undefined) {
    const type = { 'content-type': 'application/json' };
    for (const line of body.toString().trimEnd().split('\n')) {
      take({ ...type, ...JSON.parse(line) }, Buffer.from(line));
    }
  } else if (headers.rid !== undefined) take(headers, body);
  // What has neither is a probe.
}

function take(result, body) {
  const { rid, 'webhook-event': event, 'content-type': type } = result;
  // A test delivery, or seen before.
  if (rid === TEST_RID || seen.has(rid)) return;
  seen.add(rid);
  if (event !== undefined) console.log(rid, event, body.toString());
  else console.log(rid, result.cb_status, type, body.length, result.url);
}

createServer((request, response) => {
  // A request that is cut short must not end the receiver.
  receive(request, response).catch(() => response.destroy());
}).listen(Number(process.env.PORT ?? 3_000));
