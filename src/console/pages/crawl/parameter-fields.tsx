import { ScalarType } from '@bufbuild/protobuf';
import { CrawlParametersSchema } from '../../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import type { Fault } from '../../api/fault.ts';
import { SelectField, TextField } from '../../ui/field.tsx';
import { changed, type Draft, fieldOf, wordOf } from './draft-message.ts';
import { PARAMETER_GROUPS, type ParameterName } from './parameter-groups.ts';

/** Fields for how a URL is crawled. Those that need a browser are shown when there is one. */
export function ParameterFields(props: {
  readonly draft: Draft;
  readonly inBrowser: boolean;
  readonly fault: Fault | undefined;
  readonly onChange: (draft: Draft) => void;
}) {
  const { draft, fault } = props;
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
                  onInput={(value) => props.onChange(changed(draft, name, value))}
                />
              ))}
            </div>
          </details>
        );
      })}
    </div>
  );
}

function ParameterField(props: {
  readonly name: ParameterName;
  readonly help: string;
  readonly value: string;
  readonly fault: Fault | undefined;
  readonly onInput: (value: string) => void;
}) {
  const field = fieldOf(CrawlParametersSchema, props.name);
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

function labelOf(name: string): string {
  const words = name
    .replaceAll('_', ' ')
    .replace(/\b(?:css|js|pdf|md)\b/, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
