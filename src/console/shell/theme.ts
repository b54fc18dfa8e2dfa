import { computed, effect, signal } from '@preact/signals';

/** The choices of a theme; `system` follows the machine. */
export type Theme = 'system' | 'light' | 'dark';

/** Rows with more or less room. */
export type Density = 'comfortable' | 'compact';

const dark = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(dark.matches);
dark.addEventListener('change', () => {
  systemIsDark.value = dark.matches;
});

/** The chosen theme; kept by the browser, as are the density and the keys. */
export const theme = signal((localStorage.getItem('console-theme') ?? 'system') as Theme);

/** The chosen density. */
export const density = signal(
  (localStorage.getItem('console-density') ?? 'comfortable') as Density,
);

/** Whether single keys do something; Ctrl K always does. */
export const hasKeys = signal(localStorage.getItem('console-keys') !== 'off');

/** The theme that is seen. */
export const appliedTheme = computed(() => {
  if (theme.value !== 'system') return theme.value;
  return systemIsDark.value ? 'dark' : 'light';
});

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  document.documentElement.dataset['density'] = density.value;
  localStorage.setItem('console-theme', theme.value);
  localStorage.setItem('console-density', density.value);
  localStorage.setItem('console-keys', hasKeys.value ? 'on' : 'off');
});
