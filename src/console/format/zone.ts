import { effect, signal } from '@preact/signals';

/** Whether times are shown as this computer has them, or in UTC. */
export type Zone = 'local' | 'utc';

/** The zone that the user has chosen for charts; kept by the browser. */
export const zone = signal<Zone>(localStorage.getItem('console-zone') === 'utc' ? 'utc' : 'local');
effect(() => localStorage.setItem('console-zone', zone.value));

/** The zone by name. */
export function zoneName(of: Zone): string {
  return of === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const FORMS = {
  second: { timeStyle: 'medium' },
  minute: { timeStyle: 'short' },
  day: { day: 'numeric', month: 'short' },
  moment: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formats = new Map<string, Intl.DateTimeFormat>();

function format(form: keyof typeof FORMS, of: Zone, seconds: number): string {
  const key = `${form} ${of}`;
  let made = formats.get(key);
  if (made === undefined) {
    const timeZone = of === 'utc' ? { timeZone: 'UTC' } : {};
    made = new Intl.DateTimeFormat(undefined, { ...FORMS[form], ...timeZone });
    formats.set(key, made);
  }
  return made.format(seconds * 1_000);
}

/** The label of a moment on an axis whose labels are `step` seconds apart. */
export function tickOf(seconds: number, step: number, of: Zone = 'local'): string {
  if (step >= 86_400) return format('day', of, seconds);
  return format(step >= 60 ? 'minute' : 'second', of, seconds);
}

/** A moment with its zone; of `day`, the UTC day. */
export function momentText(seconds: number, of: Zone | 'day' = 'local'): string {
  if (of === 'day') return `${format('day', 'utc', seconds)}, UTC day`;
  return `${format('moment', of, seconds)}, ${zoneName(of)}`;
}
