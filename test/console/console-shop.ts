import { readFileSync } from "node:fs";
import { expect } from "chai";
import type { Answer, TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

function sample(name: string): string {
  return readFileSync(`config/resources/${name}.yaml`, "utf8");
}

/** The samples, with two attempts of each delivery of an order, an hour apart. */
export const shopResources: Readonly<Record<string, string>> = {
  "customers.yaml": sample("customers"),
  "orders.yaml": sample("orders")
    .replace("webhookMaxAttempts: 5", "webhookMaxAttempts: 2")
    .replace("webhookBackoff: [10, 60, 300]", "webhookBackoff: [3600]"),
};

let count = 0;

/** Creates an order, with a customer of its own. */
export async function createOrder(
  user: TestUser,
  { notes = "", amount = 120, name = "Grace Hopper" } = {},
): Promise<Answer["body"]> {
  count += 1;
  const email = `customer-${count}-${user.id}@example.com`;
  const customer = await user.request("POST", "/resources/customers", { name, email });
  expect(customer.status, JSON.stringify(customer.body)).to.equal(201);
  const order = { reference: `A-${1000 + count}`, amount, notes, customer_id: customer.body.id };
  const answer = await user.request("POST", "/resources/orders", order);
  expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
  return answer.body;
}

/** Subscribes a user to the orders. Returns the webhook with its secret. */
export async function subscribeOrders(
  user: TestUser,
  url: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Answer["body"]> {
  const events = ["on_create", "on_update"];
  const answer = await user.request("POST", "/webhooks", { url, resource: "orders", events, ...more });
  expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
  return answer.body;
}

/** Waits for a delivery of a webhook in this status, and returns the newest. */
export function deliveryOf(user: TestUser, webhookId: number, status: string): Promise<Answer["body"]> {
  return until(
    async () =>
      (await user.request("GET", `/webhook-deliveries?webhook_id=${webhookId}&status=${status}`)).body
        .data[0],
    { what: `a delivery that is ${status}`, timeoutMs: 60_000 },
  );
}
