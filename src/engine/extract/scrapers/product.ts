import {
  elementText,
  hasSchemaType,
  jsonLdObjects,
  metaContent,
  resolveAddress,
  type ScrapedPage,
} from './scraper.ts';

type Facts = Record<string, unknown>;

/** Whether the page declares a product of schema.org. */
export function isProduct(page: ScrapedPage): boolean {
  return (
    jsonLdObjects(page).some((object) => hasSchemaType(object, 'Product', 'ProductGroup')) ||
    page.document.querySelector('[itemtype$="schema.org/Product" i]') !== null
  );
}

/**
 * The product that a page describes by JSON-LD, microdata or Open Graph, in this order of
 * preference; unknown facts are null.
 */
export function product(page: ScrapedPage) {
  const object =
    jsonLdObjects(page).find((each) => hasSchemaType(each, 'Product', 'ProductGroup')) ?? {};
  const offer = firstObject(object.offers);
  const rating = firstObject(object.aggregateRating);
  const item = page.document.querySelector('[itemtype$="schema.org/Product" i]');
  const prop = (name: string): string | undefined => {
    const all = [...(item?.querySelectorAll(`[itemprop~="${name}"]`) ?? [])];
    // The name of the brand may come before the product's own.
    const own = all.find((each) => each.parentElement?.closest('[itemscope]') === item);
    const element = own ?? all[0];
    const link = element?.tagName === 'LINK' ? element.getAttribute('href') : undefined;
    const value = element?.getAttribute('content') ?? element?.getAttribute('src') ?? link;
    return value ?? elementText(element);
  };
  const price =
    offer.price ?? offer.lowPrice ?? prop('price') ?? metaContent(page, 'product:price:amount');
  const image = toName(object.image) ?? prop('image') ?? metaContent(page, 'og:image') ?? null;
  return {
    name: toName(object.name) ?? prop('name') ?? metaContent(page, 'og:title') ?? null,
    description:
      toName(object.description) ??
      prop('description') ??
      metaContent(page, 'og:description', 'description') ??
      null,
    brand: toName(object.brand) ?? prop('brand') ?? null,
    sku: toName(object.sku) ?? prop('sku') ?? null,
    gtin: toName(object.gtin13 ?? object.gtin ?? object.gtin12 ?? object.gtin8) ?? null,
    price: toNumber(price),
    currency:
      toName(offer.priceCurrency) ??
      prop('priceCurrency') ??
      metaContent(page, 'product:price:currency') ??
      null,
    availability:
      (toName(offer.availability) ?? prop('availability') ?? '').replace(/^.*\//, '') || null,
    rating: toNumber(rating.ratingValue ?? prop('ratingValue')),
    reviews: toNumber(rating.reviewCount ?? rating.ratingCount ?? prop('reviewCount')),
    image: resolveAddress(page, image) ?? null,
  };
}

function firstObject(value: unknown): Facts {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'object' && first !== null ? (first as Facts) : {};
}

function toName(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first === 'string' || typeof first === 'number') return String(first).trim();
  const { name, url } = firstObject(first);
  const text = name ?? url;
  return typeof text === 'string' ? text : undefined;
}

function toNumber(value: unknown): number | null {
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
