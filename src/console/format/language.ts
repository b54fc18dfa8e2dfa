/**
 * Replaces a `navigator.language` that is no language tag by the language that `Intl` uses without
 * one. Chromium under LANG=C.UTF-8 has `en-US@posix`, which `Intl` refuses, and uPlot gives it the
 * name when it is loaded.
 */
export function replaceUnknownLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    const { locale } = new Intl.NumberFormat().resolvedOptions();
    Object.defineProperty(navigator, 'language', { value: locale, configurable: true });
  }
}
