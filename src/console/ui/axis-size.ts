/** Between the edge of a chart, its labels and its lines, in pixels; uPlot has 5 next to the lines. */
const GAPS = 5 + 5;
/** Charts of short labels begin at the same place. */
const MIN_SIZE = 56;

let measuring: CanvasRenderingContext2D | null = null;

/** Width in pixels of an axis on which each of `labels` fits, as a canvas draws them in `font`. */
export function valueAxisSize(labels: readonly string[] | null, font: string): number {
  const context = (measuring ??= document.createElement('canvas').getContext('2d'));
  if (context === null) return MIN_SIZE;
  context.font = font;
  const widths = (labels ?? []).map((label) => context.measureText(label).width);
  return Math.max(MIN_SIZE, Math.ceil(Math.max(0, ...widths)) + GAPS);
}
