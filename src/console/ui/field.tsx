import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Fault } from '../api/fault.ts';

/** What every field has. */
interface FieldProps {
  readonly label: string;
  readonly help?: ComponentChildren;
  /** Its name in the protocol: a refusal that names it is shown here. */
  readonly name?: string;
  readonly fault?: Fault | undefined;
}

/** The properties of {@link TextField}. */
interface TextFieldProps extends FieldProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: 'text' | 'number' | 'url' | 'email' | 'password' | 'date' | 'datetime-local';
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly disabled?: boolean;
  readonly min?: number;
  /** Of a number, or of a time as its field has it. */
  readonly max?: number | string;
  /** Between two numbers that may be typed. */
  readonly step?: number | 'any';
  readonly pattern?: string;
  /** Whether it has the focus when its page or dialog opens. */
  readonly autofocus?: boolean;
  readonly mono?: boolean;
  /** More than one line. */
  readonly lines?: boolean;
}

/** A text, number or date with its label, its help and what is wrong with it. */
export function TextField(props: TextFieldProps) {
  const { value, onInput, lines = false, mono = false, autofocus = false } = props;
  const wrong = isAtFault(props);
  return (
    <FieldFrame {...props}>
      {(attributes) => {
        const common = {
          ...attributes,
          class: `input${mono ? ' mono' : ''}`,
          value,
          placeholder: props.placeholder ?? '',
          required: props.required ?? false,
          disabled: props.disabled ?? false,
          'aria-invalid': wrong,
          spellcheck: false,
          autocomplete: 'off',
          // A dialog that opens gives the focus to the field that has the attribute.
          ...(autofocus ? { ref: focusOnce, autofocus: true } : {}),
        } as const;
        if (lines) {
          return <textarea {...common} onInput={(event) => onInput(event.currentTarget.value)} />;
        }
        // The types of Preact tie each type of input to its roles, which are left as they are.
        const typed = { type: props.type ?? 'text' } as { type: 'text' };
        return (
          <input
            {...common}
            {...typed}
            {...(props.min === undefined ? {} : { min: props.min })}
            {...(props.max === undefined ? {} : { max: props.max })}
            {...(props.step === undefined ? {} : { step: props.step })}
            {...(props.pattern === undefined ? {} : { pattern: props.pattern })}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        );
      }}
    </FieldFrame>
  );
}

/** The properties of {@link SelectField}. */
interface SelectFieldProps extends FieldProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly disabled?: boolean;
}

/** One of a few values. */
export function SelectField(props: SelectFieldProps) {
  return (
    <FieldFrame {...props}>
      {(attributes) => (
        <select
          {...attributes}
          class="input"
          value={props.value}
          disabled={props.disabled}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        >
          {props.options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </FieldFrame>
  );
}

/** Yes or no. */
export function CheckField(props: {
  readonly label: string;
  readonly help?: string;
  readonly value: boolean;
  readonly disabled?: boolean;
  readonly onInput: (checked: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.value}
        disabled={props.disabled}
        onInput={(event) => props.onInput(event.currentTarget.checked)}
      />
      <span>
        {props.label}
        {props.help !== undefined && <span class="muted small"> {props.help}</span>}
      </span>
    </label>
  );
}

interface Described {
  readonly id: string;
  readonly 'aria-describedby'?: string | undefined;
}

function FieldFrame(
  props: FieldProps & { readonly children: (attributes: Described) => ComponentChildren },
) {
  const id = useId();
  const { label, help, fault, children } = props;
  const wrong = isAtFault(props);
  const about = [help !== undefined && `${id}-help`, wrong && `${id}-error`].filter(Boolean);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': about.length > 0 ? about.join(' ') : undefined })}
      <div class="about">
        {wrong && (
          <p class="error" id={`${id}-error`}>
            {fault?.text}
          </p>
        )}
        {help !== undefined && (
          <p class="help" id={`${id}-help`}>
            {help}
          </p>
        )}
      </div>
    </div>
  );
}

function isAtFault({ name, fault }: FieldProps): boolean {
  if (name === undefined || fault === undefined) return false;
  // One field holds all of a list; a refusal names the place in it.
  return fault.field === name || fault.field.startsWith(`${name}[`);
}

function focusOnce(element: HTMLElement | null): void {
  if (element === null || element.dataset['focused'] === 'yes') return;
  element.dataset['focused'] = 'yes';
  element.focus();
}
