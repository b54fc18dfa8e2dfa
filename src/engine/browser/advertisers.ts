import thirdParties from 'third-party-web/nostats-subset.js';

/**
 * Whether an address belongs to a company that lives on advertising, by the list that the package
 * `third-party-web` carries, and the page to none or to another.
 */
export function isOfAdvertiser(address: string, pageUrl: string): boolean {
  const owner = ownerOf(address);
  return owner?.category === 'ad' && owner.name !== ownerOf(pageUrl)?.name;
}

function ownerOf(address: string) {
  // The package looks for the host anywhere in a text.
  const host = URL.parse(address)?.hostname ?? '';
  return thirdParties.getEntity(`https://${host}/`);
}
