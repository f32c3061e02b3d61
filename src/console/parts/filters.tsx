import { useRef, useState, type JSX, type ReactNode } from "react";
import { Button } from "./button.tsx";
import { Field, optionsOf, SelectField, type Option } from "./field.tsx";
import { fromLocalTime, toLocalTime } from "./local-time.ts";
import { useUrlState } from "./url-state.ts";
import "./filters.css";

interface FilterProps {
  readonly label: string;
  /** Name of the parameter in the URL, as in the API. */
  readonly name: string;
}

/** Frames the filters of a list, whose state is in the URL. */
export function FilterBar({
  more,
  moreNames = [],
  children,
}: {
  /** Less important filters, hidden at first. */
  readonly more?: ReactNode;
  /** Parameters of these filters. They are shown when one of them is set. */
  readonly moreNames?: readonly string[];
  readonly children: ReactNode;
}): JSX.Element {
  const url = useUrlState();
  const [isOpen, setOpen] = useState(moreNames.some((name) => url.search.has(name)));
  return (
    <div className="filters" role="search" aria-label="Filters">
      {children}
      {isOpen && more}
      {more !== undefined && (
        <Button kind="quiet" icon="filter" aria-expanded={isOpen} onPress={() => setOpen(!isOpen)}>
          {isOpen ? "Fewer filters" : "More filters"}
        </Button>
      )}
      {url.filters.length > 0 && (
        <Button kind="quiet" icon="cross" onPress={() => url.clear(url.filters)}>
          Clear
        </Button>
      )}
    </div>
  );
}

/** Returns a parameter of the URL, "" without it, and a function that sets it; "" removes it. */
function useParameter(name: string): readonly [given: string, set: (text: string) => void] {
  const url = useUrlState();
  return [url.search.get(name) ?? "", (text) => url.change({ [name]: text === "" ? null : text })];
}

/** A filter by a text; Enter or leaving the field applies it. */
export function TextFilter({
  label,
  name,
  placeholder,
}: FilterProps & { readonly placeholder?: string }): JSX.Element {
  const [given, set] = useParameter(name);
  return <TypedFilter label={label} given={given} placeholder={placeholder} onApply={set} />;
}

/** A filter by a local time. The URL has it in UTC, or unchanged when the API has to refuse it. */
export function TimeFilter({ label, name }: FilterProps): JSX.Element {
  const [given, set] = useParameter(name);
  return (
    <TypedFilter
      label={label}
      type="datetime-local"
      given={toLocalTime(given)?.replace(/:\d\d$/, "") ?? ""}
      onApply={(text) => set(fromLocalTime(text))}
    />
  );
}

/**
 * A filter by a text that is not a single parameter of the URL. Enter or leaving the field applies
 * it.
 */
export function TypedFilter({
  label,
  type = "search",
  given,
  onApply,
  ...rest
}: {
  readonly label: string;
  readonly type?: string;
  readonly given: string;
  readonly placeholder?: string | undefined;
  readonly disabled?: boolean;
  readonly onApply: (text: string) => void;
}): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(given);
  const [shown, setShown] = useState(given);
  // The browser's Back, or a link, has set another text.
  if (given !== shown) {
    setShown(given);
    setText(given);
  }
  const apply = (): void => {
    // A time without its hour has an empty value, and is not complete yet.
    if (input.current?.validity.badInput === true) return;
    if (text.trim() !== given) onApply(text.trim());
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <Field label={label} hasMark={false}>
        {(control) => (
          <input
            ref={input}
            className="input"
            dir="auto"
            type={type}
            value={text}
            autoComplete="off"
            {...rest}
            {...control}
            onChange={(event) => setText(event.currentTarget.value)}
            onBlur={apply}
          />
        )}
      </Field>
    </form>
  );
}

/** A filter that chooses one of a few options, or none. */
export function SelectFilter({
  label,
  name,
  options,
  given,
  anyTitle = "any",
}: FilterProps & {
  readonly options: readonly Option[];
  /** The chosen option, when the parameter contains more than that. */
  readonly given?: string;
  readonly anyTitle?: string;
}): JSX.Element {
  const [value, set] = useParameter(name);
  const chosen = given ?? value;
  const isKnown = chosen === "" || options.some((option) => option.value === chosen);
  return (
    <SelectField
      label={label}
      hasMark={false}
      value={chosen}
      options={[{ value: "", title: anyTitle }, ...(isKnown ? [] : optionsOf([chosen])), ...options]}
      onChange={set}
    />
  );
}

/** A filter that chooses several of a few options, which the URL has with commas between them. */
export function ChoiceFilter({
  label,
  name,
  options,
}: FilterProps & { readonly options: readonly string[] }): JSX.Element {
  const [given, set] = useParameter(name);
  const chosen = given.split(",").filter(Boolean);
  const toggle = (option: string): void =>
    set(options.filter((one) => (one === option) !== chosen.includes(one)).join(","));
  return (
    <fieldset className="choices">
      <legend>{label}</legend>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          className="choice"
          aria-pressed={chosen.includes(option)}
          onClick={() => toggle(option)}
        >
          {option}
        </button>
      ))}
    </fieldset>
  );
}
