import type { Definition, FieldType } from "../mapping/definition.ts";
import { questionOf } from "../kit/did-you-mean.ts";
import type { RulesKey } from "../mapping/code-module.ts";
import {
  comparedField,
  parseRules,
  type ParsedRule,
  type RuleName,
  type RuleSpec,
} from "../validation/syntax.ts";
import { rulesOf } from "./rules.ts";

const lists = ["array", "list"] as const;
const formats = ["email", "url", "ip", "ipv4", "ipv6", "mac_address", "hex_color"] as const;
const numbers = ["integer", "numeric", "decimal"] as const;
const days = [...lists, ...formats, ...numbers, "ulid", "uuid", "boolean"] as const;

/**
 * Rules that no value of the type passes, by the type of a field or item. Contains only certain
 * cases: 26 digits are a `ulid` and a number, and an `Enum` may have any text.
 */
export const impossible: Readonly<Record<FieldType, readonly RuleName[]>> = {
  Int: [...lists, ...formats, "ulid", "uuid", "timezone"],
  BigInt: [...lists, ...formats, "ulid", "uuid", "timezone"],
  Float: [...lists, ...formats, "uuid", "timezone"],
  Decimal: [...lists, ...formats, "uuid", "timezone"],
  Boolean: [...lists, ...formats, "ulid", "uuid", "timezone"],
  DateTime: lists,
  Instant: lists,
  Date: days,
  Time: lists,
  Interval: lists,
  Uuid: [...lists, ...formats, ...numbers, "ulid", "boolean", "timezone"],
  String: lists,
  Enum: lists,
  Bytes: lists,
  Json: [],
};

/** Rules that no list passes. */
export const impossibleForLists: readonly RuleName[] = [
  ...formats,
  ...numbers,
  "ulid",
  "uuid",
  "timezone",
  "string",
  "boolean",
];

/**
 * Returns a sentence about each rule that no value of its field passes. Every request with a value
 * for the field gets a 422. Also returns one about each rule that compares with a name that is
 * neither a field nor has rules: then an `after` always holds, a `gt` never. Leaves out rules under
 * a name that is no field, and resources without writes.
 */
export function impossibleRules(definition: Definition): readonly string[] {
  const { supportsCreate, supportsUpdate } = definition;
  return [
    ...(supportsCreate ? remarksOn(definition, "createRules") : []),
    ...(supportsUpdate ? remarksOn(definition, "updateRules") : []),
  ];
}

function remarksOn(definition: Definition, key: RulesKey): readonly string[] {
  const isCode = definition.code[key] !== undefined;
  try {
    const rules = rulesOf(definition, key);
    // A value may be sent only to be compared: it has rules, and is no field.
    const sent = [...definition.fields.map(({ name }) => name), ...Object.keys(rules).map(topOf)];
    return Object.entries(rules).flatMap(([name, spec]) =>
      faultsOf(definition, name, spec, sent).map((message) =>
        isCode
          ? definition.remark(["module"], `${key}: ${name}: ${message}`)
          : definition.remark([key, name], message),
      ),
    );
  } catch {
    // A fault of the code module fails a request, not the start.
    return [];
  }
}

const topOf = (path: string): string => path.split(".")[0] ?? path;

/** @param sent Names that a body may have. */
function faultsOf(
  { fields }: Definition,
  name: string,
  spec: RuleSpec,
  sent: readonly string[],
): readonly string[] {
  const field = fields.find((one) => one.name === name || (one.isList && `${one.name}.*` === name));
  if (field === undefined) return [];
  const isList = field.isList && field.name === name;
  const refusing = isList ? impossibleForLists : impossible[field.type];
  return parseRules(spec).flatMap((rule) => {
    if (refusing.includes(rule.name))
      return `no ${isList ? "list" : field.type} passes the rule ${rule.name}, so that no request can set it`;
    return strayIn(rule, sent);
  });
}

function strayIn(rule: ParsedRule, sent: readonly string[]): readonly string[] {
  const other = comparedField(rule);
  if (other === undefined || sent.includes(topOf(other))) return [];
  return [`the rule ${rule.name} compares with ${other}, which is no field${questionOf(topOf(other), sent)}`];
}
