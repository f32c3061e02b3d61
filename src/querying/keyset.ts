import { columnText, typeText, type Parameters } from "./condition-text.ts";
import { mayBeNull, type AliasOf, type OrderItem } from "./order.ts";

/** A position in an order: the values of its columns there, as PostgreSQL's texts. */
export interface Bound {
  readonly values: readonly (string | null)[];
  /** Whether the position itself is included. */
  readonly isInclusive: boolean;
}

interface Part {
  readonly item: OrderItem;
  readonly column: string;
  /** Placeholder of the value; undefined for null. */
  readonly value: string | undefined;
}

/**
 * Writes the condition that a record comes after a position in an order.
 *
 * For an order with one direction and without nulls, it is one row comparison: an index on its
 * columns then starts exactly there. Otherwise, the comparison of the first column comes first,
 * which also limits the range of the index.
 */
export function afterText(
  order: readonly OrderItem[],
  { values, isInclusive }: Bound,
  aliasOf: AliasOf,
  parameters: Parameters,
): string {
  const bounds = order.map((item, index): Part => {
    const value = values[index] ?? null;
    return {
      item,
      column: columnText(aliasOf(item.links), item.field),
      value: value === null ? undefined : `${parameters.add(value)}${typeText(item.field)}`,
    };
  });
  const [first] = bounds;
  if (first === undefined) return isInclusive ? "TRUE" : "FALSE";
  const isUniform = bounds.every(
    ({ item, value }) => item.direction === first.item.direction && !mayBeNull(item) && value !== undefined,
  );
  if (isUniform) {
    const columns = bounds.map(({ column }) => column).join(", ");
    const places = bounds.map(({ value }) => value).join(", ");
    return `(${columns}) ${signOf(first.item)}${isInclusive ? "=" : ""} (${places})`;
  }
  const steps = bounds.map((bound, index) =>
    [...bounds.slice(0, index).map(equalText), afterOne(bound)].map((text) => `(${text})`).join(" AND "),
  );
  if (isInclusive) steps.push(bounds.map((bound) => `(${equalText(bound)})`).join(" AND "));
  const text = `(${steps.map((step) => `(${step})`).join(" OR ")})`;
  const isBounded = first.value !== undefined && !mayBeNull(first.item);
  return isBounded ? `${first.column} ${signOf(first.item)}= ${first.value} AND ${text}` : text;
}

function signOf({ direction }: OrderItem): string {
  return direction === "asc" ? ">" : "<";
}

function equalText({ column, value }: Part): string {
  return value === undefined ? `${column} IS NULL` : `${column} = ${value}`;
}

function afterOne({ item, column, value }: Part): string {
  if (value === undefined) return item.nulls === "last" ? "FALSE" : `${column} IS NOT NULL`;
  const after = `${column} ${signOf(item)} ${value}`;
  return item.nulls === "last" && mayBeNull(item) ? `${after} OR ${column} IS NULL` : after;
}
