import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

/** Fields of a message as they are typed, by their names in the API; what is absent has its default. */
export type Draft = Readonly<Record<string, string>>;

/** The draft with another value of one field; an empty one is left out. */
export function changed(draft: Draft, name: string, value: string): Draft {
  const { [name]: _, ...rest } = draft;
  return value === '' ? rest : { ...rest, [name]: value };
}

/** The fields of a message that a draft says. */
export function messageOf(schema: DescMessage, draft: Draft): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(draft).map(([name, text]) => {
      const field = fieldOf(schema, name);
      return [field.localName, typedValue(field, text)];
    }),
  );
}

/** The draft as REST takes it. */
export function queryOf(draft: Draft): string {
  return Object.entries(draft)
    .map(([name, text]) => `&${name}=${encodeURIComponent(text)}`)
    .join('');
}

/** The field of that name in the API. */
export function fieldOf(schema: DescMessage, name: string): DescField {
  const field = schema.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`${schema.name} has no field ${name}`);
  return field;
}

/** `FORMAT_HTML` as REST says it: `html`. */
export function wordOf(field: DescField & { fieldKind: 'enum' }) {
  return ({ name }: { readonly name: string }) =>
    name.slice(field.enum.sharedPrefix?.length ?? 0).toLowerCase();
}

function typedValue(field: DescField, text: string): unknown {
  if (field.fieldKind === 'enum') {
    return field.enum.values.find((value) => wordOf(field)(value) === text)?.number;
  }
  if (field.scalar === ScalarType.BOOL) return text === 'true';
  return field.scalar === ScalarType.INT32 ? Number(text) : text;
}
