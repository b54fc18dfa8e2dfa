// Creates a crawler that keeps its results in storage, pushes a URL and waits for the result.

const base = process.env.BASE ?? 'http://127.0.0.1:8080';
const token = process.env.TOKEN ?? 'example-normal-token';
const target = process.argv[2] ?? 'https://example.com/';
const crawler = 'example-node';

/** Calls the API. Throws when it refuses, but for the statuses in `expected`. */
async function call(method, path, { body, expected = [] } = {}) {
  const response = await fetch(base + path, {
    method,
    // A token in the header, unlike one in the path or query, is not written to the logs of proxies.
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const reply = await response.json();
  if (response.ok || expected.includes(response.status)) return { status: response.status, reply };
  throw new Error(`${response.status} ${reply.code}: ${reply.error}`);
}

async function resultOf(rid, timeoutMs = 60_000) {
  const giveUpAt = Date.now() + timeoutMs;
  while (Date.now() < giveUpAt) {
    const { status, reply } = await call('GET', `/storage?rid=${rid}&format=json`, {
      expected: [404],
    });
    if (status === 200) return reply;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`${rid} has no result after ${timeoutMs} ms.`);
}

// Creating it again with the same values is allowed.
await call('POST', `/crawler/${token}`, { body: { name: crawler, concurrency: 5 } });

const { reply: pushed } = await call(
  'GET',
  `/?callback=true&crawler=${crawler}&url=${encodeURIComponent(target)}`,
);
console.log(`pushed ${target} as ${pushed.rid}`);

const result = await resultOf(pushed.rid);
const title = /<title>(.*?)<\/title>/s.exec(result.body)?.[1];
console.log(`crawled: cb_status ${result.cb_status}, original_status ${result.original_status}`);
console.log(`title: ${title}`);
