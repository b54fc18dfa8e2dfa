import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib';
import { Agent, request } from 'undici';

/** Where the hosts are. */
export interface RealHosts {
  readonly port: number;
  readonly dns: string;
  readonly caFile: string;
  readonly domain: string;
  readonly count: number;
}

/** The URL of the n-th page of a list, whose hosts come in an order that repeats late. */
export function urlOf({ domain, port, count }: RealHosts, n: number): string {
  return `https://h${(n * 7_919) % count}.${domain}:${port}/page/${n}`;
}

/** An agent with what a careful client would set: the authority, and names that are looked up once. */
export function createAgent({ dns, caFile }: RealHosts): Agent {
  const resolver = new Resolver();
  resolver.setServers([dns]);
  const known = new Map<string, Promise<string[]>>();
  const lookup: LookupFunction = (name, options, callback) => {
    let found = known.get(name);
    if (found === undefined) {
      found = resolver.resolve4(name);
      known.set(name, found);
    }
    found.then(
      (addresses) => {
        const all = addresses.map((address) => ({ address, family: 4 }));
        if (options.all === true) callback(null, all);
        else callback(null, all[0]?.address ?? '', 4);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
  return new Agent({ connect: { ca: readFileSync(caFile, 'utf8'), lookup } });
}

const DECODERS: Readonly<Record<string, (coded: Buffer) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/** Gets a page, decoded. Throws an Error unless it is there. */
export async function fetchRealPage(url: string, dispatcher: Agent): Promise<Buffer> {
  const { statusCode, headers, body } = await request(url, {
    dispatcher,
    headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
  });
  const coded = Buffer.from(await body.arrayBuffer());
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`);
  return (await DECODERS[String(headers['content-encoding'])]?.(coded)) ?? coded;
}
