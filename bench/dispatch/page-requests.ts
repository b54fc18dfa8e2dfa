import { type Agent, request } from 'undici';

/** Gets a page. Throws an Error unless it is there. */
export async function fetchPage(url: string, dispatcher: Agent): Promise<Buffer> {
  const { statusCode, body } = await request(url, { dispatcher });
  const page = Buffer.from(await body.arrayBuffer());
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`);
  return page;
}

/** Posts a page to a webhook. Throws an Error unless it is acknowledged. */
export async function postPage(
  url: string,
  page: Buffer,
  headers: Readonly<Record<string, string>>,
  dispatcher: Agent,
): Promise<void> {
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'text/html', ...headers },
    body: page,
    dispatcher,
  });
  await body.dump();
  if (statusCode !== 204) throw new Error(`${url} answered ${statusCode}`);
}
