import type { Notice } from './notices.ts';

/** Notices that a digest lists. */
const LISTED = 1_000;
/** Notices that it quotes in full. */
const IN_FULL = 5;

/** Joins the notices of one account into one mail; a single notice stays as it is. */
export function toDigest(account: string, notices: readonly Notice[]): Notice {
  const [first] = notices;
  if (first !== undefined && notices.length === 1) return first;
  const bySubject = [...Map.groupBy(notices, ({ subject }) => subject)];
  const list = bySubject
    .slice(0, LISTED)
    .map(([subject, { length }]) => `- ${subject}${length > 1 ? ` (${length} times)` : ''}`);
  if (bySubject.length > LISTED) list.push(`- and ${bySubject.length - LISTED} more`);
  // Of notices that repeat, the newest says all that is left to know.
  const texts = bySubject
    .slice(0, IN_FULL)
    .map(([, repeated]) => repeated.at(-1)?.text.trimEnd() ?? '');
  const which = bySubject.length > IN_FULL ? `The first ${IN_FULL} in full:` : 'In full:';
  return {
    subject: `${notices.length} notices about the crawlers of account ${account}`,
    text: `${notices.length} things happened to the crawlers of account ${account}
since the last notice:

${list.join('\n')}

${which}

${texts.join('\n\n----\n\n')}
`,
  };
}
