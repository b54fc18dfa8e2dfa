import type { CrawlParameters } from '../../domain/parameters.ts';

/** Where a visitor seems to be; undefined is as the machine has it. */
export interface VisitorPlace {
  /** A language with its region, `de-DE`. */
  readonly locale: string | undefined;
  /** IANA name, `Europe/Berlin`. */
  readonly timezone: string | undefined;
}

/** Where most people live, in countries with several time zones. */
const MAIN_ZONES: Readonly<Record<string, string>> = {
  AR: 'America/Argentina/Buenos_Aires',
  AU: 'Australia/Sydney',
  BR: 'America/Sao_Paulo',
  CA: 'America/Toronto',
  CD: 'Africa/Kinshasa',
  CL: 'America/Santiago',
  CN: 'Asia/Shanghai',
  CY: 'Asia/Nicosia',
  DE: 'Europe/Berlin',
  EC: 'America/Guayaquil',
  ES: 'Europe/Madrid',
  GL: 'America/Nuuk',
  ID: 'Asia/Jakarta',
  KZ: 'Asia/Almaty',
  MN: 'Asia/Ulaanbaatar',
  MX: 'America/Mexico_City',
  MY: 'Asia/Kuala_Lumpur',
  NZ: 'Pacific/Auckland',
  PF: 'Pacific/Tahiti',
  PT: 'Europe/Lisbon',
  RU: 'Europe/Moscow',
  UA: 'Europe/Kyiv',
  US: 'America/New_York',
  UZ: 'Asia/Tashkent',
};

/** `locale` and `timezone`, else those of `country`. */
export function visitorPlace({ country, locale, timezone }: CrawlParameters): VisitorPlace {
  return {
    locale: locale ?? (country === undefined ? undefined : localeOf(country)),
    timezone: timezone ?? (country === undefined ? undefined : timezoneOf(country)),
  };
}

/** The value of `Accept-Language` in the form that Chromium takes: without weights. */
export function languagesOf(locale: string): string {
  const { language } = new Intl.Locale(locale);
  return language === locale ? locale : `${locale},${language}`;
}

function localeOf(country: string): string | undefined {
  const { language } = new Intl.Locale(`und-${country}`).maximize();
  return language === 'und' ? undefined : `${language}-${country}`;
}

function timezoneOf(country: string): string | undefined {
  const locale = new Intl.Locale(`und-${country}`) as Intl.Locale & {
    // ECMAScript 2026; not in the types yet.
    getTimeZones(): string[] | undefined;
  };
  return MAIN_ZONES[country] ?? locale.getTimeZones()?.[0];
}
