import type { Protocol } from 'devtools-protocol';
import type { RESOURCE_KINDS } from '../../domain/parameter-table.ts';
import { isOfAdvertiser } from './advertisers.ts';
import { siteOf } from './site-of.ts';

type Kind = (typeof RESOURCE_KINDS)[number];
type Request = Pick<Protocol.Fetch.RequestPausedEvent, 'request' | 'resourceType'>;

const KINDS: { readonly [Type in Protocol.Network.ResourceType]?: Kind } = {
  Image: 'images',
  Media: 'media',
  TextTrack: 'media',
  Font: 'fonts',
  Stylesheet: 'stylesheets',
};

/**
 * Makes the check whether `block_resources` excludes a request of the page at `pageUrl`. The
 * document of the page itself is not for this check.
 */
export function createResourceFilter(
  parameter = '',
): (request: Request, pageUrl: string) => boolean {
  const names = new Set(parameter.split(','));
  return ({ request, resourceType }, pageUrl) => {
    const kind = KINDS[resourceType];
    if (kind !== undefined && names.has(kind)) return true;
    if (names.has('third_party') && siteOf(request.url) !== siteOf(pageUrl)) return true;
    return names.has('ads') && isOfAdvertiser(request.url, pageUrl);
  };
}
