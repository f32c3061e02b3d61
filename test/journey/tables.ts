/** Mapping files of tables of every kind, and the SQL that makes those that svc does not. */
export const tableFiles: Readonly<Record<string, string>> = {
  "prices.yaml": `
name: prices
model: Price
fields:
  sku: { type: String, id: true, length: 20 }
  day: { type: Date, id: true }
  amount: { type: Decimal, precision: 10, scale: 2 }
  note: { type: String, optional: true }
triggers: [on_create, on_update, on_delete]
`,
  "carts.yaml": `
name: carts
model: Cart
fields:
  id: { type: Int, id: true }
  name: { type: String }
triggers: []
includes: [cart_goods]
`,
  "goods.yaml": `
name: goods
model: Good
fields:
  id: { type: Int, id: true }
  name: { type: String }
triggers: []
`,
  "cart-goods.yaml": `
name: cart-goods
model: CartGood
table: cart_goods
managed: false
fields:
  cart_id: { type: Int, id: true, references: carts.id }
  good_id: { type: Int, id: true, references: goods.id }
  quantity: { type: Int }
triggers: [on_create]
baseQuery: { include: { good: true } }
transform: { cart_id: cart_id, good_id: good_id, quantity: quantity, good: { name: good.name } }
`,
};

export const tableSql = `
CREATE TABLE cart_goods (cart_id int, good_id int, quantity int NOT NULL, PRIMARY KEY (cart_id, good_id));
`;
