import { ScalarType } from '@bufbuild/protobuf';
import {
  type CrawlParameters,
  CrawlParametersSchema,
} from '../../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import type { Fault } from '../../api/fault.ts';
import { SelectField, TextField } from '../../ui/field.tsx';
import { PARAMETER_GROUPS, type ParameterName } from './parameter-groups.ts';

/** Parameters as they are typed, by their name in the API; what is absent has its default. */
export type ParameterDraft = Readonly<Record<string, string>>;

/** Fields for how a URL is crawled. Those that need a browser are shown when there is one. */
export function ParameterFields(props: {
  readonly draft: ParameterDraft;
  readonly inBrowser: boolean;
  readonly fault: Fault | undefined;
  readonly onChange: (draft: ParameterDraft) => void;
}) {
  const { draft, fault } = props;
  const change = (name: string, value: string): void => {
    const { [name]: _, ...rest } = draft;
    props.onChange(value === '' ? rest : { ...rest, [name]: value });
  };
  return (
    <div class="stack">
      {PARAMETER_GROUPS.filter(({ browser }) => props.inBrowser || !browser).map((group) => {
        const used = group.parameters.filter(([name]) => draft[name] !== undefined).length;
        return (
          <details key={group.title}>
            <summary>
              <strong>{group.title}</strong>{' '}
              {used > 0 && <span class="badge bare accent">{used} set</span>}
            </summary>
            <div class="fields">
              {group.parameters.map(([name, help]) => (
                <ParameterField
                  key={name}
                  name={name}
                  help={help}
                  value={draft[name] ?? ''}
                  fault={fault}
                  onInput={(value) => change(name, value)}
                />
              ))}
            </div>
          </details>
        );
      })}
    </div>
  );
}

/** The message that a draft says. */
export function parametersOf(draft: ParameterDraft): Partial<CrawlParameters> {
  return Object.fromEntries(
    Object.entries(draft).map(([name, text]) => {
      const field = fieldOf(name);
      return [field.localName, typedValue(field, text)];
    }),
  );
}

/** The draft as REST takes it. */
export function queryOf(draft: ParameterDraft): string {
  return Object.entries(draft)
    .map(([name, text]) => `&${name}=${encodeURIComponent(text)}`)
    .join('');
}

type Field = (typeof CrawlParametersSchema.fields)[number];

function ParameterField(props: {
  readonly name: ParameterName;
  readonly help: string;
  readonly value: string;
  readonly fault: Fault | undefined;
  readonly onInput: (value: string) => void;
}) {
  const field = fieldOf(props.name);
  const common = { ...props, label: labelOf(props.name) };
  if (field.fieldKind === 'enum') {
    const words = field.enum.values.filter(({ number }) => number !== 0).map(wordOf(field));
    return (
      <SelectField
        {...common}
        options={[['', 'Default'], ...words.map((word) => [word, word] as const)]}
      />
    );
  }
  if (field.scalar === ScalarType.BOOL) {
    return (
      <SelectField
        {...common}
        options={[
          ['', 'Default: no'],
          ['true', 'Yes'],
        ]}
      />
    );
  }
  return <TextField {...common} type={field.scalar === ScalarType.INT32 ? 'number' : 'text'} />;
}

function typedValue(field: Field, text: string): unknown {
  if (field.fieldKind === 'enum') {
    return field.enum.values.find((value) => wordOf(field)(value) === text)?.number;
  }
  if (field.scalar === ScalarType.BOOL) return text === 'true';
  return field.scalar === ScalarType.INT32 ? Number(text) : text;
}

/** `FORMAT_HTML` as REST says it: `html`. */
function wordOf(field: Field & { fieldKind: 'enum' }) {
  return ({ name }: { readonly name: string }) =>
    name.slice(field.enum.sharedPrefix?.length ?? 0).toLowerCase();
}

function fieldOf(name: string): Field {
  const field = CrawlParametersSchema.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`no crawl parameter ${name}`);
  return field;
}

function labelOf(name: string): string {
  const words = name
    .replaceAll('_', ' ')
    .replace(/\b(?:css|js|pdf|md)\b/, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
