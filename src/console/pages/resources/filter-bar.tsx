import { useState, type JSX } from "react";
import { goToBadInput } from "../../parts/bad-input.ts";
import { Button } from "../../parts/button.tsx";
import { ChecksField, optionsOf, SelectField, TextField } from "../../parts/field.tsx";
import { Icon } from "../../parts/icon.tsx";
import { PopoverButton } from "../../parts/popover.tsx";
import { exactText } from "../../parts/time.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import {
  conditionsOf,
  oneValue,
  operatorTitle,
  parameterOf,
  takesSeveral,
  timeCondition,
  valuesOf,
} from "./filters.ts";
import type { FilterShape } from "./shape.ts";

/** Shows the conditions of the list, each with a button that removes it. */
export function Conditions(): JSX.Element | null {
  const url = useUrlState();
  const conditions = conditionsOf(url.search);
  if (conditions.length === 0) return null;
  return (
    <ul className="row conditions" aria-label="Filters">
      {conditions.map(({ parameter, path, operator, value }) => {
        const text =
          operator === "null"
            ? `${path} ${value === "true" ? "is empty" : "is not empty"}`
            : operator === "between"
              ? `${path} is between ${valuesOf(value).map(exactText).join(" and ")}`
              : `${path} ${operatorTitle(operator)} ${exactText(value)}`;
        return (
          <li key={`${parameter}=${value}`} className="condition">
            <span className="break">{text}</span>
            <button
              type="button"
              aria-label={`Remove the filter ${text}`}
              onClick={() => url.change({ [parameter]: null })}
            >
              <Icon name="cross" size={12} />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** Adds a condition on one of the filterable paths. */
export function FilterButton({ filters }: { readonly filters: readonly FilterShape[] }): JSX.Element {
  return (
    <PopoverButton label="Filter" icon="filter">
      {(close) => <FilterForm filters={filters} onDone={close} />}
    </PopoverButton>
  );
}

function FilterForm({
  filters,
  onDone,
}: {
  readonly filters: readonly FilterShape[];
  readonly onDone: () => void;
}): JSX.Element {
  const url = useUrlState();
  const [path, setPath] = useState(filters[0]?.path ?? "");
  const filter = filters.find((one) => one.path === path) ?? filters[0];
  const operators = filter === undefined ? [] : offeredOperators(filter);
  const [asked, setOperator] = useState(operators[0] ?? "eq");
  const operator = operators.includes(asked) ? asked : (operators[0] ?? "eq");
  const [value, setValue] = useState("");
  const choices = operator === "null" ? ["true", "false"] : takesOne(operator) ? (filter?.choices ?? []) : [];
  const type =
    takesOne(operator) || /^[lg]te?$/.test(operator) ? inputTypes[filter?.format ?? ""] : undefined;
  const chosen = choices.length > 0 && !choices.includes(value) ? (choices[0] ?? "") : value;
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (goToBadInput(event.currentTarget)) return;
        const isOne = choices.length > 0 || type !== undefined || !takesSeveral(operator);
        const given = isOne ? oneValue(chosen) : chosen;
        url.change(
          type === "datetime-local"
            ? timeCondition(path, operator, chosen, operators)
            : { [parameterOf(path, operator)]: given },
        );
        onDone();
      }}
    >
      <SelectField
        label="Field"
        isRequired
        autoFocus
        value={path}
        onChange={(next) => {
          setPath(next);
          setValue("");
        }}
        options={optionsOf(filters.map((one) => one.path))}
      />
      <SelectField
        label="Condition"
        isRequired
        value={operator}
        onChange={setOperator}
        options={operators.map((one) => ({ value: one, title: operatorTitle(one) }))}
      />
      {choices.length > 0 ? (
        <SelectField
          label="Value"
          isRequired
          value={chosen}
          onChange={setValue}
          options={choices.map((one) => ({ value: one, title: titleOf(operator, one) }))}
        />
      ) : (
        <TextField
          label="Value"
          isRequired
          type={type}
          value={value}
          onChange={setValue}
          hint={
            type === undefined && takesSeveral(operator)
              ? "Several values with commas between them"
              : undefined
          }
        />
      )}
      <Button type="submit" kind="primary">
        Add the filter
      </Button>
    </form>
  );
}

/**
 * Returns the operators of a path. No record has exactly the time of a control, which has minutes.
 * So every record would differ from it.
 */
function offeredOperators({ operators, format }: FilterShape): readonly string[] {
  return format === "date-time" ? operators.filter((one) => one !== "ne") : operators;
}

/** Controls for a single value of a format. */
const inputTypes: Readonly<Record<string, string>> = { "date-time": "datetime-local", date: "date" };

function takesOne(operator: string): boolean {
  return operator === "eq" || operator === "ne";
}

function titleOf(operator: string, choice: string): string {
  if (operator !== "null") return choice;
  return choice === "true" ? "yes" : "no";
}

/** Chooses the columns. The URL names them unless they are the default columns. */
export function ColumnsButton({
  paths,
  shown,
}: {
  readonly paths: readonly string[];
  readonly shown: readonly string[];
}): JSX.Element {
  const url = useUrlState();
  return (
    <PopoverButton label="Columns" icon="columns">
      {() => (
        <>
          <ChecksField
            label="Columns"
            options={paths.map((value) => ({ value }))}
            chosen={shown}
            onChange={(next) => {
              if (next.length > 0) url.change({ columns: next.join(",") }, "page");
            }}
          />
          <Button kind="quiet" onPress={() => url.change({ columns: null }, "page")}>
            Reset columns
          </Button>
        </>
      )}
    </PopoverButton>
  );
}
