import { toPath, type Path } from "./body-paths.ts";
import { onValue, type Check, type Exclusion, type MakeCheck, type Subject } from "./check.ts";
import { isEmpty, meansArgument, textOf } from "./values.ts";

/** Creates a check that the field is filled when a condition on other fields holds. */
function requiredWhen(
  isAsked: (subject: Subject, paths: readonly Path[]) => boolean,
): (fields: readonly string[]) => Check {
  return (fields) => {
    const paths = fields.map(toPath);
    return (subject) => {
      if (!isEmpty(subject.value) || !isAsked(subject, paths)) return undefined;
      return { blanks: { values: namesOf(subject, fields) } };
    };
  };
}

function namesOf(subject: Subject, fields: readonly string[]): string {
  return fields.map((field) => subject.nameOf(field)).join(" / ");
}

/**
 * Returns whether another field has one of the values; the value `null` also matches an absent
 * field.
 */
function otherMatches([field = "", ...values]: readonly string[]): (subject: Subject) => boolean {
  const path = toPath(field);
  return (subject) => {
    const other = subject.at(path) ?? null;
    return values.some((value) => meansArgument(other, value));
  };
}

/** Returns whether a field is present and has one of the values. */
function presentOtherMatches(args: readonly string[]): (subject: Subject) => boolean {
  const path = toPath(args[0] ?? "");
  const matches = otherMatches(args);
  return (subject) => subject.at(path) !== undefined && matches(subject);
}

const requiredIf: MakeCheck = (args) => {
  const [field = ""] = args;
  const path = toPath(field);
  const matches = presentOtherMatches(args);
  return (subject) => {
    if (!isEmpty(subject.value) || !matches(subject)) return undefined;
    const other = subject.at(path);
    return {
      blanks: { other: subject.nameOf(field), value: other === null ? "empty" : (textOf(other) ?? "") },
    };
  };
};

const requiredUnless: MakeCheck = (args) => {
  const [field = "", ...values] = args;
  const matches = otherMatches(args);
  return (subject) => {
    if (!isEmpty(subject.value) || matches(subject)) return undefined;
    return { blanks: { other: subject.nameOf(field), values: values.join(", ") } };
  };
};

const prohibits: MakeCheck = (fields) => {
  const paths = fields.map(toPath);
  return (subject) => {
    if (isEmpty(subject.value) || paths.every((path) => isEmpty(subject.at(path)))) return undefined;
    return { blanks: { other: namesOf(subject, fields) } };
  };
};

const yes: ReadonlySet<unknown> = new Set(["yes", "on", "1", 1, true, "true"]);
const no: ReadonlySet<unknown> = new Set(["no", "off", "0", 0, false, "false"]);

/** The checks of rules on presence. */
export const presenceChecks = {
  required: onValue((value) => !isEmpty(value)),
  required_if: requiredIf,
  required_unless: requiredUnless,
  required_with: requiredWhen((subject, paths) => paths.some((path) => !isEmpty(subject.at(path)))),
  required_with_all: requiredWhen((subject, paths) => paths.every((path) => !isEmpty(subject.at(path)))),
  required_without: requiredWhen((subject, paths) => paths.some((path) => isEmpty(subject.at(path)))),
  required_without_all: requiredWhen((subject, paths) => paths.every((path) => isEmpty(subject.at(path)))),
  present: onValue((value) => value !== undefined),
  filled: onValue((value) => value === undefined || !isEmpty(value)),
  missing: onValue((value) => value === undefined),
  prohibited: onValue((value) => isEmpty(value)),
  prohibits,
  accepted: onValue((value) => yes.has(value)),
  declined: onValue((value) => no.has(value)),
} satisfies Record<string, MakeCheck>;

/** Conditions under which a field is left out: it is neither checked nor returned. */
export const exclusions: Readonly<
  Record<Exclusion, (args: readonly string[]) => (subject: Subject) => boolean>
> = {
  exclude: () => () => true,
  exclude_if: presentOtherMatches,
  exclude_unless: (args) => {
    const matches = otherMatches(args);
    return (subject) => !matches(subject);
  },
  exclude_with: ([field = ""]) => {
    const path = toPath(field);
    return (subject) => subject.at(path) !== undefined;
  },
  exclude_without: ([field = ""]) => {
    const path = toPath(field);
    return (subject) => isEmpty(subject.at(path));
  },
};
