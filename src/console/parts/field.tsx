import { useId, useState, type ComponentProps, type JSX, type ReactNode } from "react";
import { badInputMessage } from "./bad-input.ts";
import { Icon } from "./icon.tsx";
import "./field.css";

/** Properties of the control of a field, which connect it with its label, hint and messages. */
interface ControlProps {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
  readonly "aria-required": boolean | undefined;
}

export interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** Messages of the server, or of the form. */
  readonly errors?: readonly string[] | undefined;
  readonly isRequired?: boolean;
  /**
   * Whether a field that is not required is marked as optional. Forms that change something have no
   * mark.
   */
  readonly hasMark?: boolean;
}

/** Puts a label over a control, and below it its hint and the server's messages. */
export function Field({
  label,
  hint,
  errors = [],
  isRequired = false,
  hasMark = true,
  children,
}: FieldProps & { readonly children: (control: ControlProps) => ReactNode }): JSX.Element {
  const id = useId();
  const isWrong = errors.length > 0;
  const described = [hint === undefined ? "" : `${id}-hint`, isWrong ? `${id}-errors` : ""].filter(Boolean);
  return (
    <div className={`field${isWrong ? " wrong" : ""}`}>
      <label htmlFor={id}>
        {label}
        {hasMark && !isRequired && <span className="muted small"> optional</span>}
      </label>
      {children({
        id,
        "aria-describedby": described.length === 0 ? undefined : described.join(" "),
        "aria-invalid": isWrong ? true : undefined,
        "aria-required": isRequired ? true : undefined,
      })}
      {hint !== undefined && (
        <div id={`${id}-hint`} className="field-hint small muted">
          {hint}
        </div>
      )}
      <FieldErrors id={`${id}-errors`} errors={errors} />
    </div>
  );
}

/** Shows messages next to the field or part that they are about. */
export function FieldErrors({
  id,
  errors,
}: {
  readonly id?: string;
  readonly errors: readonly string[];
}): JSX.Element | null {
  if (errors.length === 0) return null;
  return (
    <div id={id} className="field-errors small" role="alert">
      {errors.map((error) => (
        <p key={error} className="break">
          <Icon name="alert" size={14} /> {error}
        </p>
      ))}
    </div>
  );
}

/** Properties of a field with a text, whose control takes the rest of the attributes of `Tag`. */
type TextFieldProps<Tag extends "input" | "textarea" | "select"> = FieldProps & {
  readonly value: string;
  readonly onChange: (value: string) => void;
} & Omit<ComponentProps<Tag>, "value" | "onChange" | "id" | "className">;

/** Splits the properties of a field into those of its frame and those of its control. */
function split<Props extends FieldProps>({
  label,
  hint,
  errors,
  isRequired,
  hasMark,
  ...rest
}: Props): readonly [FieldProps, Omit<Props, keyof FieldProps>] {
  return [{ label, hint, errors, isRequired, hasMark }, rest];
}

/** A field with an input of one line. */
export function TextField(props: TextFieldProps<"input">): JSX.Element {
  const [field, { value, onChange, ...rest }] = split(props);
  // Message that is set when `goToBadInput` reaches the field.
  const [bad, setBad] = useState<string | null>(null);
  return (
    <Field {...field} errors={bad === null ? field.errors : [bad]}>
      {(control) => (
        <input
          className="input"
          dir="auto"
          autoComplete="off"
          {...rest}
          {...control}
          value={value}
          onChange={(event) => {
            setBad(null);
            onChange(event.currentTarget.value);
          }}
          onInvalid={(event) => setBad(badInputMessage(event.currentTarget))}
          // No change event reports that an incomplete date was cleared.
          onBlur={(event) => !event.currentTarget.validity.badInput && setBad(null)}
        />
      )}
    </Field>
  );
}

/** A field with several lines of text; `isCode` for JSON. */
export function AreaField(props: TextFieldProps<"textarea"> & { readonly isCode?: boolean }): JSX.Element {
  const [field, { value, onChange, isCode = false, ...rest }] = split(props);
  return (
    <Field {...field}>
      {(control) => (
        <textarea
          className={`input${isCode ? " mono" : ""}`}
          dir={isCode ? "ltr" : "auto"}
          rows={isCode ? 8 : 4}
          spellCheck={!isCode}
          {...rest}
          {...control}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export interface Option {
  readonly value: string;
  readonly title: string;
}

/** Returns options that are shown as they are sent. */
export function optionsOf(values: readonly string[]): readonly Option[] {
  return values.map((value) => ({ value, title: value }));
}

/** A field that chooses one of a few options. */
export function SelectField(
  props: TextFieldProps<"select"> & { readonly options: readonly Option[] },
): JSX.Element {
  const [field, { value, onChange, options, ...rest }] = split(props);
  return (
    <Field {...field}>
      {(control) => (
        <select
          className="input"
          {...rest}
          {...control}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.title}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField({
  label,
  hint,
  value,
  onChange,
}: {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}): JSX.Element {
  return (
    <label className="check">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        {label}
        {hint !== undefined && <span className="small muted">{hint}</span>}
      </span>
    </label>
  );
}

/** Chooses several of a few options. */
export function ChecksField({
  label,
  options,
  chosen,
  errors = [],
  onChange,
}: {
  readonly label: string;
  readonly options: readonly {
    readonly value: string;
    readonly title?: ReactNode;
    readonly hint?: ReactNode;
  }[];
  readonly chosen: readonly string[];
  readonly errors?: readonly string[] | undefined;
  /** Called with the chosen options, in the order of all. */
  readonly onChange: (chosen: readonly string[]) => void;
}): JSX.Element {
  const id = useId();
  const toggle = (value: string): readonly string[] =>
    options.map((option) => option.value).filter((one) => (one === value) !== chosen.includes(one));
  return (
    <fieldset aria-describedby={errors.length > 0 ? id : undefined}>
      <legend>{label}</legend>
      <div className="checks">
        {options.map(({ value, title = value, hint }) => (
          <CheckField
            key={value}
            label={title}
            hint={hint}
            value={chosen.includes(value)}
            onChange={() => onChange(toggle(value))}
          />
        ))}
      </div>
      <FieldErrors id={id} errors={errors} />
    </fieldset>
  );
}
