import type { RuleName } from "./syntax.ts";
import type { Path } from "./body-paths.ts";

/** Rules that steer the others and have no message. */
export type Modifier = "bail" | "nullable" | "sometimes" | Exclusion;
export type Exclusion = "exclude" | "exclude_if" | "exclude_unless" | "exclude_with" | "exclude_without";

/** Rules that ask the database. */
export type LookupRule = "exists" | "unique";

/** Rules that can be broken, and so have a message. */
export type TestName = Exclude<RuleName, Modifier>;

/** What `min`, `max` and their kin measure, and with which words: characters, the number itself, or items. */
export type SizeKind = "string" | "numeric" | "array";

/** What the rules of a field know of one another, fixed when they are compiled. */
export interface FieldRules {
  readonly key: Path;
  readonly sizeKind: SizeKind;
  /** Arguments of the field's `date_format`; empty without one. */
  readonly dateFormats: readonly string[];
}

/** One value under test, and its surroundings. */
export interface Subject {
  /** Undefined when the body has no such key. */
  readonly value: unknown;
  /** When the body is judged, for `today` and the like. */
  readonly now: Date;
  /** Another field's value; a `*` in the path stands for the same item as in the subject's own. */
  at(path: Path): unknown;
  /** All values that a path with `*` reaches; at most as many as a body may have items. */
  allAt(path: Path): readonly unknown[];
  /** Computes once per body, for what would otherwise be computed for each of many items. */
  once<T>(name: string, compute: () => T): T;
}

/** Why a rule is broken, for its message. */
export interface Broken {
  /** What replaces `:min`, `:other` and so on. */
  readonly blanks?: Readonly<Record<string, string>>;
  /** The variant of the message, where it is not the one of the field's size kind. */
  readonly kind?: SizeKind;
  /** In place of the rule's message. */
  readonly message?: string;
}

/** Undefined: the rule holds. */
export type Check = (subject: Subject) => Broken | undefined;

/** Made once, when the rules are compiled. */
export type MakeCheck = (args: readonly string[], field: FieldRules) => Check;

const broken: Broken = {};

/** A rule on the value alone, with nothing to fill in its message. */
export function onValue(holds: (value: unknown, args: readonly string[]) => boolean): MakeCheck {
  return (args) => (subject) => (holds(subject.value, args) ? undefined : broken);
}

/** A rule on the value alone, with blanks that are fixed by its arguments. */
export function onValueWith(
  blanksOf: (args: readonly string[]) => Readonly<Record<string, string>>,
  holds: (value: unknown, args: readonly string[]) => boolean,
): MakeCheck {
  return (args) => {
    const failure: Broken = { blanks: blanksOf(args) };
    return (subject) => (holds(subject.value, args) ? undefined : failure);
  };
}

/** A rule on texts: everything else breaks it. */
export const onText = (holds: (text: string, args: readonly string[]) => boolean): MakeCheck =>
  onValue((value, args) => typeof value === "string" && holds(value, args));
