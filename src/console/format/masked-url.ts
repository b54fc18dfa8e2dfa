const HIDDEN = '•••';
/** Path parts that are as long and mixed as generated secrets. */
const SECRET = /^(?=.*\d)[\w~-]{16,}$/;

/** A URL as it may be seen by others: its user, the values of its query and secret parts of its path are hidden. */
export function maskedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const user = url.username === '' ? '' : `${HIDDEN}@`;
  const path = url.pathname
    .split('/')
    .map((part) => (SECRET.test(part) ? HIDDEN : part))
    .join('/');
  const names = [...url.searchParams.keys()].map((name) => `${name}=${HIDDEN}`);
  const query = names.length === 0 ? '' : `?${names.join('&')}`;
  return `${url.protocol}//${user}${url.host}${path}${query}`;
}
