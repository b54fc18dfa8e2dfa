/** The places of values without a neighbour: a line needs two, so a point has to show them. */
export function lonePoints(values: readonly (number | null | undefined)[]): number[] {
  const isKnown = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  return [...values.keys()].filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1));
}
