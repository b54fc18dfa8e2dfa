/** The fields of `Fields` that may be undefined become optional; the others stay as they are. */
export type Defined<Fields> = {
  [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name];
} & {
  [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<
    Fields[Name],
    undefined
  >;
};

/**
 * A copy of `fields` without those that are undefined, for types whose optional fields must be
 * absent rather than undefined.
 */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(fields) as (keyof Fields & string)[]) {
    if (fields[name] !== undefined) kept[name] = fields[name];
  }
  return kept as Defined<Fields>;
}
