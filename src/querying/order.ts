import type { Field } from "../mapping/definition.ts";
import { columnText } from "./condition-text.ts";
import type { Link } from "./links.ts";

/**
 * One item of an order: a column of the record itself, or of a record that relations to one lead
 * to.
 */
export interface OrderItem {
  readonly links: readonly Link[];
  readonly field: Field;
  readonly direction: "asc" | "desc";
  readonly nulls: "first" | "last";
}

/** Returns the alias of the table at the end of the links. */
export type AliasOf = (links: readonly Link[]) => string;

/**
 * Writes an ORDER BY. Leaves out the positions of nulls that are PostgreSQL's defaults, so that
 * plain indexes serve it.
 */
export function orderText(order: readonly OrderItem[], aliasOf: AliasOf): string {
  return order
    .map(({ links, field, direction, nulls }) => {
      const column = columnText(aliasOf(links), field);
      const usual = direction === "asc" ? "last" : "first";
      const place = mayBeNull({ links, field }) && nulls !== usual ? ` NULLS ${nulls.toUpperCase()}` : "";
      return `${column}${direction === "desc" ? " DESC" : ""}${place}`;
    })
    .join(", ");
}

/**
 * Returns whether a record may have no value in the item: an optional field, the key of a view, or
 * a missing related record.
 */
export function mayBeNull({ links, field }: Pick<OrderItem, "links" | "field">): boolean {
  return field.isOptional || field.isNullable === true || links.some(({ isCertain }) => !isCertain);
}

/** Returns the reversed order, which reads a list from its end. */
export function reversed(order: readonly OrderItem[]): readonly OrderItem[] {
  return order.map((item) => ({
    ...item,
    direction: item.direction === "asc" ? "desc" : "asc",
    nulls: item.nulls === "first" ? "last" : "first",
  }));
}
