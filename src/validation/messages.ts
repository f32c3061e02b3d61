import type { Violation, SizeKind, TestName } from "./check.ts";
import { displayName } from "./values.ts";

interface Failure extends Violation {
  readonly rule: TestName;
  readonly field: string;
  readonly sizeKind: SizeKind;
}

type Template = string | Readonly<Record<SizeKind, string>>;

/** Laravel's English messages, word for word. */
const templates: Readonly<Record<TestName, Template>> = {
  required: "The :attribute field is required.",
  required_if: "The :attribute field is required when :other is :value.",
  required_unless: "The :attribute field is required unless :other is in :values.",
  required_with: "The :attribute field is required when :values is present.",
  required_with_all: "The :attribute field is required when :values are present.",
  required_without: "The :attribute field is required when :values is not present.",
  required_without_all: "The :attribute field is required when none of :values are present.",
  present: "The :attribute field must be present.",
  filled: "The :attribute field must have a value.",
  missing: "The :attribute field must be missing.",
  prohibited: "The :attribute field is prohibited.",
  prohibits: "The :attribute field prohibits :other from being present.",
  accepted: "The :attribute field must be accepted.",
  declined: "The :attribute field must be declined.",
  string: "The :attribute field must be a string.",
  integer: "The :attribute field must be an integer.",
  numeric: "The :attribute field must be a number.",
  decimal: "The :attribute field must have :decimal decimal places.",
  boolean: "The :attribute field must be true or false.",
  array: "The :attribute field must be an array.",
  list: "The :attribute field must be a list.",
  json: "The :attribute field must be a valid JSON string.",
  min: {
    string: "The :attribute field must be at least :min characters.",
    numeric: "The :attribute field must be at least :min.",
    array: "The :attribute field must have at least :min items.",
  },
  max: {
    string: "The :attribute field must not be greater than :max characters.",
    numeric: "The :attribute field must not be greater than :max.",
    array: "The :attribute field must not have more than :max items.",
  },
  between: {
    string: "The :attribute field must be between :min and :max characters.",
    numeric: "The :attribute field must be between :min and :max.",
    array: "The :attribute field must have between :min and :max items.",
  },
  size: {
    string: "The :attribute field must be :size characters.",
    numeric: "The :attribute field must be :size.",
    array: "The :attribute field must contain :size items.",
  },
  gt: {
    string: "The :attribute field must be greater than :value characters.",
    numeric: "The :attribute field must be greater than :value.",
    array: "The :attribute field must have more than :value items.",
  },
  gte: {
    string: "The :attribute field must be greater than or equal to :value characters.",
    numeric: "The :attribute field must be greater than or equal to :value.",
    array: "The :attribute field must have :value items or more.",
  },
  lt: {
    string: "The :attribute field must be less than :value characters.",
    numeric: "The :attribute field must be less than :value.",
    array: "The :attribute field must have less than :value items.",
  },
  lte: {
    string: "The :attribute field must be less than or equal to :value characters.",
    numeric: "The :attribute field must be less than or equal to :value.",
    array: "The :attribute field must not have more than :value items.",
  },
  digits: "The :attribute field must be :digits digits.",
  digits_between: "The :attribute field must be between :min and :max digits.",
  min_digits: "The :attribute field must have at least :min digits.",
  max_digits: "The :attribute field must not have more than :max digits.",
  multiple_of: "The :attribute field must be a multiple of :value.",
  email: "The :attribute field must be a valid email address.",
  url: "The :attribute field must be a valid URL.",
  uuid: "The :attribute field must be a valid UUID.",
  ulid: "The :attribute field must be a valid ULID.",
  ip: "The :attribute field must be a valid IP address.",
  ipv4: "The :attribute field must be a valid IPv4 address.",
  ipv6: "The :attribute field must be a valid IPv6 address.",
  mac_address: "The :attribute field must be a valid MAC address.",
  date: "The :attribute field must be a valid date.",
  date_format: "The :attribute field must match the format :format.",
  date_equals: "The :attribute field must be a date equal to :date.",
  after: "The :attribute field must be a date after :date.",
  after_or_equal: "The :attribute field must be a date after or equal to :date.",
  before: "The :attribute field must be a date before :date.",
  before_or_equal: "The :attribute field must be a date before or equal to :date.",
  timezone: "The :attribute field must be a valid timezone.",
  in: "The selected :attribute is invalid.",
  not_in: "The selected :attribute is invalid.",
  enum: "The selected :attribute is invalid.",
  exists: "The selected :attribute is invalid.",
  in_array: "The :attribute field must exist in :other.",
  regex: "The :attribute field format is invalid.",
  not_regex: "The :attribute field format is invalid.",
  unique: "The :attribute has already been taken.",
  confirmed: "The :attribute field confirmation does not match.",
  same: "The :attribute field must match :other.",
  different: "The :attribute field and :other must be different.",
  alpha: "The :attribute field must only contain letters.",
  alpha_dash: "The :attribute field must only contain letters, numbers, dashes, and underscores.",
  alpha_num: "The :attribute field must only contain letters and numbers.",
  ascii: "The :attribute field must only contain single-byte alphanumeric characters and symbols.",
  lowercase: "The :attribute field must be lowercase.",
  uppercase: "The :attribute field must be uppercase.",
  starts_with: "The :attribute field must start with one of the following: :values.",
  ends_with: "The :attribute field must end with one of the following: :values.",
  doesnt_start_with: "The :attribute field must not start with one of the following: :values.",
  doesnt_end_with: "The :attribute field must not end with one of the following: :values.",
  contains: "The :attribute field is missing a required value.",
  doesnt_contain: "The :attribute field must not contain any of the following: :values.",
  distinct: "The :attribute field has a duplicate value.",
  required_array_keys: "The :attribute field must contain entries for: :values.",
  hex_color: "The :attribute field must be a valid hexadecimal color.",
  base64: "The :attribute field must be a valid Base64 string.",
};

/**
 * Returns the message of a broken rule. `kind` is the variant, where it differs from the field's
 * size kind.
 */
export function messageFor({ rule, field, sizeKind, blanks, kind = sizeKind, message }: Failure): string {
  const template = message ?? templates[rule];
  return fill(typeof template === "string" ? template : template[kind], field, blanks);
}

/**
 * Fills all placeholders in one pass, so that a value that looks like a placeholder stays as it is.
 */
export function fill(template: string, field: string, blanks: Readonly<Record<string, string>> = {}): string {
  return template.replace(/:([a-z]+)/g, (blank, name: string) => {
    if (name === "attribute") return displayName(field);
    return Object.hasOwn(blanks, name) ? (blanks[name] ?? blank) : blank;
  });
}
