import { addressOf, isOfType, jsonLdOf, metaOf, type ScrapedPage, textOf } from './scraper.ts';

type Facts = Record<string, unknown>;

/** Whether the page says, in schema.org's words, that it shows a product. */
export function isProduct(page: ScrapedPage): boolean {
  return (
    jsonLdOf(page).some((object) => isOfType(object, 'Product', 'ProductGroup')) ||
    page.document.querySelector('[itemtype$="schema.org/Product" i]') !== null
  );
}

/**
 * The product a page describes by JSON-LD, microdata or Open Graph, in this order; unknown facts
 * are null.
 */
export function product(page: ScrapedPage) {
  const object = jsonLdOf(page).find((each) => isOfType(each, 'Product', 'ProductGroup')) ?? {};
  const offer = firstObject(object.offers);
  const rating = firstObject(object.aggregateRating);
  const item = page.document.querySelector('[itemtype$="schema.org/Product" i]');
  const prop = (name: string): string | undefined => {
    const element = item?.querySelector(`[itemprop~="${name}"]`);
    const value = element?.getAttribute('content') ?? element?.getAttribute('src');
    return value ?? textOf(element);
  };
  const price =
    offer.price ?? offer.lowPrice ?? prop('price') ?? metaOf(page, 'product:price:amount');
  const image = nameOf(object.image) ?? prop('image') ?? metaOf(page, 'og:image') ?? null;
  return {
    name: nameOf(object.name) ?? prop('name') ?? metaOf(page, 'og:title') ?? null,
    description:
      nameOf(object.description) ??
      prop('description') ??
      metaOf(page, 'og:description', 'description') ??
      null,
    brand: nameOf(object.brand) ?? prop('brand') ?? null,
    sku: nameOf(object.sku) ?? prop('sku') ?? null,
    gtin: nameOf(object.gtin13 ?? object.gtin ?? object.gtin12 ?? object.gtin8) ?? null,
    price: numberOf(price),
    currency:
      nameOf(offer.priceCurrency) ??
      prop('priceCurrency') ??
      metaOf(page, 'product:price:currency') ??
      null,
    availability:
      (nameOf(offer.availability) ?? prop('availability') ?? '').replace(/^.*\//, '') || null,
    rating: numberOf(rating.ratingValue ?? prop('ratingValue')),
    reviews: numberOf(rating.reviewCount ?? rating.ratingCount ?? prop('reviewCount')),
    image: addressOf(page, image) ?? null,
  };
}

function firstObject(value: unknown): Facts {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'object' && first !== null ? (first as Facts) : {};
}

function nameOf(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first === 'string' || typeof first === 'number') return String(first).trim();
  const { name, url } = firstObject(first);
  const text = name ?? url;
  return typeof text === 'string' ? text : undefined;
}

function numberOf(value: unknown): number | null {
  const text = (
    typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  ).replace(/[^\d.,-]/g, '');
  // `1.299,00` and `1,299.00` are the same price.
  const plain = /,\d{1,2}$/.test(text)
    ? text.replaceAll('.', '').replace(',', '.')
    : text.replaceAll(',', '');
  const number = Number.parseFloat(plain);
  return Number.isFinite(number) ? number : null;
}
