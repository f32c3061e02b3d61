import { isContainer, isEqual, toPath } from "./body-paths.ts";
import { onValue, onValueWith, type MakeCheck } from "./check.ts";
import { displayName, meansArgument, textOf } from "./values.ts";

const isOneOf = (value: unknown, args: readonly string[]): boolean =>
  value !== null && args.some((arg) => meansArgument(value, arg));

/**
 * Creates `in` and `not_in`. In a field with the rule `array`, every item must be one of the
 * values, or none of them.
 */
function listed(wanted: boolean): MakeCheck {
  return (args, { sizeKind }) =>
    ({ value }) => {
      const items = sizeKind === "array" && isContainer(value) ? Object.values(value) : [value];
      return items.every((item) => isOneOf(item, args) === wanted) ? undefined : {};
    };
}

const inArray: MakeCheck = ([field = ""]) => {
  const path = toPath(field);
  const failure = { blanks: { other: displayName(field) } };
  return (subject) => {
    const texts = subject.once(`in_array ${field}`, () => new Set(subject.allAt(path).map(textOf)));
    const text = textOf(subject.value);
    return text !== undefined && texts.has(text) ? undefined : failure;
  };
};

const same: MakeCheck = ([field = ""]) => {
  const path = toPath(field);
  return (subject) =>
    isEqual(subject.value, subject.at(path)) ? undefined : { blanks: { other: subject.nameOf(field) } };
};

const different: MakeCheck = (fields) => {
  const paths = fields.map(toPath);
  return (subject) => {
    const isSame = paths.some((path) => {
      const other = subject.at(path);
      return other !== undefined && isEqual(subject.value, other);
    });
    return isSame ? { blanks: { other: subject.nameOf(fields[0] ?? "") } } : undefined;
  };
};

const confirmed: MakeCheck = ([field], { key }) => {
  const path =
    field === undefined ? [...key.slice(0, -1), `${key.at(-1) ?? ""}_confirmation`] : toPath(field);
  return (subject) => (isEqual(subject.value, subject.at(path)) ? undefined : {});
};

/** Returns a text that is the same for values that `distinct` treats as equal. */
function identity(value: unknown, mode: string | undefined): string {
  if (mode === "strict" || isContainer(value)) return JSON.stringify(value);
  const text = textOf(value) ?? "null";
  return mode === "ignore_case" ? text.toLowerCase() : text;
}

/**
 * Creates `distinct`. On `tags.*` it compares each item with the others; on the array itself, it
 * compares its items.
 */
const distinct: MakeCheck = ([mode], { key }) => {
  const isOnItems = key.includes("*");
  return (subject) => {
    if (!isOnItems) {
      const items = isContainer(subject.value) ? Object.values(subject.value) : [];
      return new Set(items.map((item) => identity(item, mode))).size === items.length ? undefined : {};
    }
    const counts = subject.once(`distinct ${key.join(".")}`, () => {
      const found = new Map<string, number>();
      for (const value of subject.allAt(key)) {
        const text = identity(value, mode);
        found.set(text, (found.get(text) ?? 0) + 1);
      }
      return found;
    });
    return (counts.get(identity(subject.value, mode)) ?? 0) > 1 ? {} : undefined;
  };
};

/** The checks of rules on choices and comparisons. */
export const choiceChecks = {
  in: listed(true),
  enum: listed(true),
  not_in: listed(false),
  in_array: inArray,
  same,
  different,
  confirmed,
  distinct,
  contains: onValue(
    (value, args) =>
      isContainer(value) &&
      args.every((arg) => Object.values(value).some((item) => meansArgument(item, arg))),
  ),
  doesnt_contain: onValueWith(
    (args) => ({ values: args.join(", ") }),
    (value, args) =>
      isContainer(value) &&
      !args.some((arg) => Object.values(value).some((item) => meansArgument(item, arg))),
  ),
} satisfies Record<string, MakeCheck>;
