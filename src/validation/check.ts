import type { RuleName } from "./syntax.ts";
import type { Path } from "./body-paths.ts";

/** Rules that control the others and have no message. */
export type Modifier = "bail" | "nullable" | "sometimes" | Exclusion;
/** Rules that leave a field out. */
export type Exclusion = "exclude" | "exclude_if" | "exclude_unless" | "exclude_with" | "exclude_without";

/** Rules that query the database. */
export type LookupRule = "exists" | "unique";

/** Rules that can be broken, and therefore have a message. */
export type TestName = Exclude<RuleName, Modifier>;

/**
 * The measure of `min`, `max` and similar rules, and of their messages: characters, the number
 * itself, or items.
 */
export type SizeKind = "string" | "numeric" | "array";

/** Facts about the rules of a field that other rules of it use, fixed when they are compiled. */
export interface FieldRules {
  readonly key: Path;
  readonly sizeKind: SizeKind;
  /** Arguments of the field's `date_format`; empty without one. */
  readonly dateFormats: readonly string[];
}

/** A value to check, and the rest of the body. */
export interface Subject {
  /** Undefined when the body has no such key. */
  readonly value: unknown;
  /** The time of the validation, for `today` and similar words. */
  readonly now: Date;
  /**
   * Returns another field's value; a `*` in the path stands for the same item as in the subject's
   * own path.
   */
  at(path: Path): unknown;
  /** Returns another field's name for messages, with the same item in place of a `*`. */
  nameOf(field: string): string;
  /** Returns all values that match a path with `*`; at most as many as a body may have items. */
  allAt(path: Path): readonly unknown[];
  /** Computes a value once per body, instead of once for each of many items. */
  once<T>(name: string, compute: () => T): T;
}

/** Details of a broken rule, for its message. */
export interface Violation {
  /** Values of `:min`, `:other` and other placeholders. */
  readonly blanks?: Readonly<Record<string, string>>;
  /** The variant of the message, where it differs from the field's size kind. */
  readonly kind?: SizeKind;
  /** Replaces the rule's message. */
  readonly message?: string;
}

/** Returns the violation; undefined when the rule holds. */
export type Check = (subject: Subject) => Violation | undefined;

/** Creates a check once, when the rules are compiled. */
export type MakeCheck = (args: readonly string[], field: FieldRules) => Check;

const broken: Violation = {};

/** Creates a rule on the value alone, whose message has no placeholders. */
export function onValue(holds: (value: unknown, args: readonly string[]) => boolean): MakeCheck {
  return (args) => (subject) => (holds(subject.value, args) ? undefined : broken);
}

/** Creates a rule on the value alone, whose arguments fill the placeholders. */
export function onValueWith(
  blanksOf: (args: readonly string[]) => Readonly<Record<string, string>>,
  holds: (value: unknown, args: readonly string[]) => boolean,
): MakeCheck {
  return (args) => {
    const failure: Violation = { blanks: blanksOf(args) };
    return (subject) => (holds(subject.value, args) ? undefined : failure);
  };
}

/** Creates a rule on texts, which every other value breaks. */
export const onText = (holds: (text: string, args: readonly string[]) => boolean): MakeCheck =>
  onValue((value, args) => typeof value === "string" && holds(value, args));
