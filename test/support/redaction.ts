import { ADMIN, JAVASCRIPT, NORMAL } from './tokens.ts';

// What services log in tests is searched for secrets: `logged` takes each line, `redaction-check.ts` fails the test file.

const KNOWN = [NORMAL, JAVASCRIPT, ADMIN];
/** Tokens and signing secrets that clients have got or sent. */
const secrets = new Set(KNOWN);
const leaks: string[] = [];

/** What never belongs into a line, whatever it is of: authorization, signing secrets, passwords and queries of URLs. */
const SECRET_FORM =
  /bearer [\w.~-]{8,}|whsec_[\w+/=]|\w+:\/\/[^\s"/]*:[^\s"/]*@|https?:\/\/[^\s"]*\?[^\s"]/i;

/** Takes a line of the log of a service. */
export function logged(line: string): void {
  if (hasSecret(line)) leaks.push(line);
}

/** Whether a line holds a secret that was used, or anything that looks like one. */
export function hasSecret(line: string): boolean {
  return SECRET_FORM.test(line) || [...secrets].some((secret) => line.includes(secret));
}

/** The lines of a test file that hold a secret. Forgets them, and the secrets of that file. */
export function takeLeakedLines(): readonly string[] {
  secrets.clear();
  for (const secret of KNOWN) secrets.add(secret);
  return leaks.splice(0);
}

const SECRET_FIELDS = /^(?:normal_|javascript_)?token$|^secret$/;

/** Remembers the tokens and secrets of a reply, at any depth. */
export function rememberSecrets(json: unknown): void {
  if (typeof json !== 'object' || json === null) return;
  for (const [name, value] of Object.entries(json)) {
    if (typeof value === 'object') rememberSecrets(value);
    else if (typeof value === 'string' && value.length > 8 && SECRET_FIELDS.test(name))
      secrets.add(value);
  }
}
