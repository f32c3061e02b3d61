import { expect } from "chai";
import type { Answer, TestUser } from "../support/service.ts";

/** Creates a record as a user, and returns the record of the answer. */
export async function create(user: TestUser, resource: string, body: object): Promise<Answer["body"]> {
  const answer = await user.request("POST", `/resources/${resource}`, body);
  expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
  return answer.body;
}

/**
 * Mapping files that use every method of the specification's table 2.1 and every kind of value of
 * the contract's section 4.
 */
export const shop: Readonly<Record<string, string>> = {
  "customers.yaml": `
name: customers
model: Customer
fields:
  id: { type: Int, id: true }
  name: { type: String, length: 40 }
triggers: []
supportsUpdate: false
`,
  "orders.yaml": `
name: orders
model: Order
fields:
  id: { type: Int, id: true }
  reference: { type: String, length: 40, unique: true }
  status: { type: Enum, values: [open, paid, shipped], default: open }
  amount: { type: Decimal, precision: 12, scale: 2 }
  notes: { type: String, optional: true }
  customer_id: { type: Int, optional: true, references: customers.id, as: customer, onDelete: restrict }
  user_id: { type: Int }
  is_hidden: { type: Boolean, default: false }
  created_at: { type: DateTime, default: now }
  updated_at: { type: DateTime, updatedAt: true }
triggers: [on_create, on_update]
transform:
  id: id
  reference: reference
  status: status
  amount: amount
  notes: notes
  customer: { id: customer.id, name: customer.name }
  kind: { value: order }
  created_at: created_at
  updated_at: updated_at
createRules:
  reference: required|string|max:40|unique:orders,reference
  amount: required|numeric|min:0
  notes: [nullable, string, { max: 20 }]
  customer_id: sometimes|integer|exists:customers,id
  is_hidden: sometimes|boolean
updateRules:
  status: sometimes|in:open,paid,shipped
  amount: sometimes|required|numeric|min:0
ownerColumn: user_id
searchableColumns: [reference, notes]
baseQuery:
  include: { customer: true }
  where: { is_hidden: false }
  orderBy: [{ status: desc }]
`,
  "kinds.yaml": `
name: kinds
model: Kind
fields:
  kind_id: { type: BigInt, id: true }
  text: { type: String }
  small: { type: Int, optional: true }
  big: { type: BigInt, optional: true }
  ratio: { type: Float, optional: true }
  price: { type: Decimal, precision: 30, scale: 4, optional: true }
  is_done: { type: Boolean, default: false }
  due_at: { type: DateTime, optional: true }
  meta: { type: Json, optional: true }
  data: { type: Bytes, optional: true }
  token: { type: Uuid, optional: true }
  tags: { type: String, list: true, default: [] }
  user_id: { type: Int }
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
`,
  "pages.yaml": `
name: pages
model: Page
fields:
  slug: { type: String, id: true, length: 20 }
  title: { type: String }
  user_id: { type: Int }
triggers: [on_delete]
ownerColumn: user_id
searchableColumns: [title]
module: ./pages.mjs
`,
  "pages.mjs": `
export const transform = ({ slug, title }) => ({ slug, heading: title.toUpperCase() });
export const createRules = () => ({ slug: "required|string|max:20", title: "required|string" });
export const applySearch = (query, search) => ({ ...query, where: { slug: search } });
export const baseQuery = () => ({ orderBy: [{ title: "desc" }] });
`,
  "logs.yaml": `
name: logs
model: Log
fields:
  id: { type: Int, id: true }
  line: { type: String, default: "started" }
  user_id: { type: Int, optional: true }
triggers: []
ownerColumn: user_id
supportsCreate: false
supportsUpdate: false
supportsDelete: false
`,
};
