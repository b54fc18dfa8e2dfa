/** The host of a URL without its port; an IPv6 address without its brackets. */
export function bareHostname(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The port that an http or https URL leads to. */
export function effectivePort(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** The path and the query of a request for a URL; a `?` without a query stays, as in browsers. */
export function pathAndQuery(url: URL): string {
  if (url.search !== '') return url.pathname + url.search;
  return url.href.split('#', 1)[0]?.endsWith('?') === true ? `${url.pathname}?` : url.pathname;
}

/**
 * The value of `Authorization` or `Proxy-Authorization` for the user name and password in a URL;
 * undefined without them.
 */
export function basicAuthorization(url: Pick<URL, 'username' | 'password'>): string | undefined {
  if (url.username === '' && url.password === '') return undefined;
  const credentials = `${decodeUserInfo(url.username)}:${decodeUserInfo(url.password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** A user name or a password as it was before it was put into a URL. */
export function decodeUserInfo(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that begins no escape stands for itself.
    return text;
  }
}
