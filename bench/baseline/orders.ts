import type { Router } from "@koa/router";
import type { Pool } from "pg";
import { dateOf, envelopeOf, pageOf, refuse, refuseFaults, trimmed, userOf } from "./kit.ts";

interface Order {
  readonly id: number;
  readonly reference: string;
  readonly amount: string;
  readonly customer_id: number;
  readonly customer_name: string;
  readonly user_id: number;
  readonly created_at: Date;
}

const path = "/resources/orders";
const columns = `o.id, o.reference, o.amount, o.customer_id, o.user_id, o.created_at, c.name AS customer_name`;
const joined = `orders o JOIN customers c ON c.id = o.customer_id`;

const findOrder = { name: "find_order", text: `SELECT ${columns} FROM ${joined} WHERE o.id = $1` };
const listOrders = {
  name: "list_orders",
  text: `SELECT ${columns} FROM ${joined} WHERE o.user_id = $3 ORDER BY o.id LIMIT $1 OFFSET $2`,
};
const countOrders = {
  name: "count_orders",
  text: `SELECT count(*)::int AS total FROM orders WHERE user_id = $1`,
};
/** Both rules that query the database, in one statement. */
const judge = {
  name: "judge_order",
  text: `SELECT EXISTS (SELECT FROM orders WHERE reference = $1) AS taken, EXISTS (SELECT FROM customers WHERE id = $2) AS known`,
};
const insertOrder = {
  name: "insert_order",
  text: `WITH o AS (
      INSERT INTO orders (reference, amount, customer_id, user_id) VALUES ($1, $2, $3, $4) RETURNING *
    ) SELECT ${columns} FROM o JOIN customers c ON c.id = o.customer_id`,
};

function toJson({ id, reference, amount, customer_id, customer_name, created_at }: Order): object {
  return {
    id,
    reference,
    amount,
    customer: { id: customer_id, name: customer_name },
    created_at: dateOf(created_at),
  };
}

function faultsOf({ reference, amount, customer_id }: Record<string, unknown>): Record<string, string[]> {
  const faults: Record<string, string[]> = {};
  if (typeof reference !== "string" || reference === "" || reference.length > 40)
    faults["reference"] = ["The reference field is required."];
  if (typeof amount !== "number" || amount < 0) faults["amount"] = ["The amount field must be a number."];
  if (!Number.isInteger(customer_id)) faults["customer_id"] = ["The customer id field must be an integer."];
  return faults;
}

/** Adds the same routes for a table whose records show a related record. */
export function addOrders(
  router: Router,
  { pool, publicUrl }: { readonly pool: Pool; readonly publicUrl: string },
): void {
  router.get(path, async (ctx) => {
    const { id } = userOf(ctx);
    const { page, perPage } = pageOf(ctx);
    const [orders, counts] = await Promise.all([
      pool.query<Order>(listOrders, [perPage, (page - 1) * perPage, id]),
      pool.query<{ readonly total: number }>(countOrders, [id]),
    ]);
    const total = counts.rows[0]?.total ?? 0;
    ctx.body = envelopeOf(ctx, { data: orders.rows.map(toJson), total, page, perPage, publicUrl });
  });

  router.get(`${path}/:id`, async (ctx) => {
    const id = ctx.params["id"] ?? "";
    const order = /^\d{1,9}$/.test(id) ? (await pool.query<Order>(findOrder, [id])).rows[0] : undefined;
    if (order === undefined) return refuse(ctx, 404);
    if (order.user_id !== userOf(ctx).id) return refuse(ctx, 403);
    ctx.body = toJson(order);
  });

  router.post(path, async (ctx) => {
    const body = trimmed(ctx.request.body as Record<string, unknown>);
    const faults = faultsOf(body);
    if (refuseFaults(ctx, faults)) return;
    const { reference, amount, customer_id } = body;
    const [judged] = (
      await pool.query<{ readonly taken: boolean; readonly known: boolean }>(judge, [reference, customer_id])
    ).rows;
    if (judged?.taken ?? true) faults["reference"] = ["The reference has already been taken."];
    if (!(judged?.known ?? false)) faults["customer_id"] = ["The selected customer id is invalid."];
    if (refuseFaults(ctx, faults)) return;
    const inserted = await pool.query<Order>(insertOrder, [reference, amount, customer_id, userOf(ctx).id]);
    ctx.status = 201;
    ctx.body = inserted.rows.map(toJson)[0];
  });
}
