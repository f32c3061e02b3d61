import type { Definition } from "../mapping/definition.ts";
import type { Condition } from "./condition.ts";
import { mayBeNull, type OrderItem } from "./order.ts";

/**
 * Returns the first item of ORDER BY for the records without a value in the first field of an
 * order. It is that field, where an index of the mapping file has the whole order. Before it, the
 * index may have fields that the condition compares with one value.
 *
 * PostgreSQL does not know that the column is the same in all of these records. Without it, the
 * key's index is read. A page of few such records, all among the newest of a million, took 250 ms
 * instead of 0.1. With it and without such an index, all records without a value are sorted:
 * 980,000 took 300 ms.
 */
export function indexedLead(
  { indexes }: Definition,
  condition: Condition,
  order: readonly OrderItem[],
): OrderItem | undefined {
  const [first, next, ...others] = order;
  if (first === undefined || next === undefined) return undefined;
  const isUniform = [next, ...others].every(
    (item) => item.links.length === 0 && item.direction === next.direction && !mayBeNull(item),
  );
  const equal = new Set(equalFields(condition));
  const isIndexed = indexes.some(({ fields, where, type }) => {
    const start = fields.findIndex((name) => !equal.has(name));
    const isSame = order.every(({ field }, index) => field.name === fields[start + index]);
    return type === "btree" && where === undefined && isSame;
  });
  if (!isUniform || !isIndexed) return undefined;
  return { ...next, field: { ...first.field, isOptional: false, isNullable: false } };
}

function equalFields(condition: Condition): readonly string[] {
  if (condition.kind === "all") return condition.of.flatMap(equalFields);
  return condition.kind === "compare" && condition.operator === "=" ? [condition.field.name] : [];
}
