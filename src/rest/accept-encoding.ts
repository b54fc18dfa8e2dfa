/**
 * Whether a client accepts gzip, by its `Accept-Encoding` (RFC 9110, 12.5.3). A client that sends
 * no such header gets plain bytes, because it would not decompress them.
 */
export function acceptsGzip(header: string | undefined): boolean {
  let wildcard = false;
  for (const part of (header ?? '').toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((each) => each.trim());
    const quality = parameters.find((each) => each.startsWith('q='))?.slice(2) ?? '1';
    if (coding === 'gzip' || coding === 'x-gzip') return Number(quality) > 0;
    if (coding === '*') wildcard = Number(quality) > 0;
  }
  return wildcard;
}
