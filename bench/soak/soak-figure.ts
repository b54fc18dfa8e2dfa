import type { Series } from './trend.ts';

const WIDTH = 720;
const PANEL = 110;
const LEFT = 64;
const RIGHT = 12;
const TOP = 46;
const GAP = 30;

/** Draws measurements over time below each other, as SVG. */
export function soakFigure(title: string, all: readonly Series[]): string {
  const height = TOP + all.length * (PANEL + GAP) + 8;
  const panels = all.map((series, at) => panel(series, TOP + at * (PANEL + GAP)));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${LEFT}" y="18" font-weight="bold">${escape(title)}</text>
${panels.join('\n')}
</svg>
`;
}

function panel({ name, unit, points }: Series, top: number): string {
  const seconds = points.at(-1)?.[0] ?? 1;
  const most = niceCeiling(Math.max(...points.map(([, value]) => value)));
  const x = (at: number): number => LEFT + (at / seconds) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => top + PANEL - (value / most) * PANEL;
  const line = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const grid = [0, 0.5, 1].map((share) => {
    const at = y(share * most).toFixed(1);
    return `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}" stroke="#ddd"/><text x="${LEFT - 6}" y="${at}" dy="4" text-anchor="end" fill="#555">${share * most}</text>`;
  });
  const minutes = `${Math.round(seconds / 6) / 10} min`;
  return `<text x="${LEFT}" y="${top - 4}" fill="#333">${escape(name)}, ${escape(unit)}</text>
${grid.join('\n')}
<polyline points="${line}" fill="none" stroke="#1565c0" stroke-width="1.5"/>
<text x="${WIDTH - RIGHT}" y="${top + PANEL + 14}" text-anchor="end" fill="#555">${minutes}</text>`;
}

/** The next of 1, 2, 5, 10, 20, ... that is not below a value. */
function niceCeiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
