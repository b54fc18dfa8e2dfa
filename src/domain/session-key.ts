import { createHash } from 'node:crypto';
import type { CrawlParameters } from './parameters.ts';

/**
 * Stands for the visitor that `session` names: the name, and what a site sees of the visitor. So a
 * crawl with another device or country is another visitor, with cookies and a proxy of its own.
 */
export function sessionKey(parameters: CrawlParameters): string {
  const { session, device = 'desktop', user_agent: agent, country } = parameters;
  const { locale, timezone } = parameters;
  const seen = [session, device, agent, country, locale, timezone];
  return createHash('sha256').update(JSON.stringify(seen)).digest('base64url').slice(0, 22);
}
