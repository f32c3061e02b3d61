import type { Caller } from "../kit/caller.ts";
import type { Fault } from "../config/yaml-source.ts";
import { callCode } from "../mapping/code-module.ts";
import { OperatorError } from "../kit/errors.ts";
import {
  operations,
  type AccessOperation,
  type AccessRule,
  type Definition,
  type Definitions,
  type Field,
} from "../mapping/definition.ts";
import { allOf, always, isNever, never, withParts, type Condition } from "../querying/condition.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { bindCondition } from "../querying/user-values.ts";

/**
 * Returns whether the caller sees and changes every record of the resource (docs/mapping.md,
 * "Ownership and admins"). Throws when the code module's `isAdmin` throws, or returns anything but
 * true or false: a promise would count as true.
 */
export function isAdminFor(definition: Definition, caller: Caller): boolean {
  if (caller.isLimited === true) return false;
  const decide = definition.code.isAdmin;
  if (decide !== undefined) {
    // Gets a copy, because other resources of the request also use the caller for decisions.
    const answer: unknown = callCode(definition, "isAdmin", () => decide({ ...caller }));
    if (typeof answer === "boolean") return answer;
    throw new Error(`isAdmin of the resource ${definition.name} must answer true or false`);
  }
  const rule = definition.isAdmin;
  if (rule.kind === "emails")
    return rule.emails.some((email) => lowerAscii(email) === lowerAscii(caller.email));
  return rule.kind === "flag" && caller.isAdmin;
}

/**
 * Lowers only ASCII letters. JavaScript lowers the Kelvin sign to a k. An address with the sign
 * would then match that of an admin.
 */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

export interface AccessConditions {
  /**
   * Returns the condition for records on which the caller may do all wanted operations. For admins
   * of the resource, it is every record.
   */
  of(definition: Definition, wanted: readonly AccessOperation[], caller: Caller): Condition;
  /**
   * Returns the filter of the rule for reading, with the values of users as variables; undefined
   * for other rules.
   */
  readFilter(definition: Definition): Condition | undefined;
  /** Returns the condition, limited to related records that the caller may read. */
  withinReach(condition: Condition, caller: Caller): Condition;
}

const undecided = "has a comparison or a value that cannot decide on access";

/** Returns a fault for each rule of access that `createAccessConditions` refuses. */
export function accessFaults(definitions: Definitions): readonly Fault[] {
  return [...definitions.values()].flatMap((definition) =>
    operations
      .filter((operation) => {
        const { access } = definition;
        const rule = access[operation];
        // An operation without its own rule has the rule of another.
        const isOwn = operations.find((one) => access[one] === rule) === operation;
        const isFilter = isOwn && rule.kind === "filter";
        return isFilter && conditionOf(definition, definitions, rule.where) === undefined;
      })
      .map((operation) => definition.faultAt(["access", operation], undecided)),
  );
}

/**
 * Compiles the rules of access.
 *
 * @throws OperatorError for a filter with a comparison that SQL lacks, or a value that its field
 *   cannot hold.
 */
export function createAccessConditions(definitions: Definitions): AccessConditions {
  const filters = new Map<AccessRule, Condition>();
  for (const definition of definitions.values()) {
    for (const operation of operations) {
      const rule = definition.access[operation];
      if (rule.kind !== "filter") continue;
      const condition = conditionOf(definition, definitions, rule.where);
      if (condition === undefined)
        throw new OperatorError(definition.remark(["access", operation], undecided));
      filters.set(rule, condition);
    }
  }

  function conditionOfRule(rule: AccessRule, definition: Definition, caller: Caller): Condition {
    switch (rule.kind) {
      case "everyone":
        return always;
      case "admin":
        return never;
      case "owner":
        return ownerCondition(definition, caller);
      case "filter":
        return bindCondition(filters.get(rule) as Condition, caller);
    }
  }

  const access: AccessConditions = {
    of(definition, wanted, caller) {
      if (isAdminFor(definition, caller)) return always;
      const rules = wanted.map((operation) => definition.access[operation]);
      const conditions = rules
        .filter((rule, index) => rules.findIndex((other) => isSame(rule, other)) === index)
        .map((rule) => conditionOfRule(rule, definition, caller));
      return conditions.some(isNever) ? never : allOf(conditions);
    },
    readFilter: ({ access: { read } }) => filters.get(read),
    withinReach(condition, caller) {
      const within = withParts(condition, (one) => access.withinReach(one, caller));
      if (within.kind !== "related") return within;
      const { target } = within.link;
      const readable = isUnguarded(target) ? always : access.of(target, ["read"], caller);
      return { ...within, of: allOf([readable, within.of]) };
    },
  };
  return access;
}

/**
 * Returns whether the mapping file has no rules of access and no owner. Every `transform` that
 * names such records shows them, as before the key `access` existed.
 */
export function isUnguarded({ access: { read, reference }, ownerColumn }: Definition): boolean {
  return read.kind === "owner" && ownerColumn === undefined && reference.kind === "everyone";
}

function isSame(rule: AccessRule, other: AccessRule): boolean {
  return rule === other || (rule.kind !== "filter" && rule.kind === other.kind);
}

function ownerCondition(definition: Definition, caller: Caller): Condition {
  const owner = ownerFieldOf(definition);
  if (owner === undefined) return never;
  return { kind: "compare", field: owner, operator: "=", value: String(caller.id) };
}

/** Returns the owner field; undefined for a resource without owners. */
export function ownerFieldOf(definition: Definition): Field | undefined {
  return definition.fields.find(({ name }) => name === definition.ownerColumn);
}

/** Returns the caller's id in the type of the owner column: Int, BigInt or String. */
export function ownerValue(owner: Field, caller: Caller): number | bigint | string {
  if (owner.type === "BigInt") return BigInt(caller.id);
  return owner.type === "String" ? String(caller.id) : caller.id;
}
