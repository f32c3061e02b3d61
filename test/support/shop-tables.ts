/**
 * The tables of `listShop`, with four orders with values of every kind. One has microseconds, which
 * no record shows, and one a NaN, which is shown as null.
 */
export const shopTables = `
  CREATE TYPE status AS ENUM ('open', 'paid', 'shipped');
  CREATE TABLE customers (id int PRIMARY KEY, name text, secret text, vip boolean);
  CREATE TABLE orders (id int PRIMARY KEY, reference varchar(40), status status, amount numeric(12, 2), weight float8, serial bigint,
    is_urgent boolean, due timestamptz, token uuid, tags text[], meta jsonb, logs jsonb[], blob bytea, hidden text, customer_id int REFERENCES customers);
  CREATE TABLE lines (id serial PRIMARY KEY, order_id int REFERENCES orders, sku text, quantity int);
  INSERT INTO customers VALUES (1, 'Ada', 's', true), (2, NULL, 's', NULL);
  INSERT INTO orders VALUES
    (1, 'A-1', 'open', 10.50, 0.5, 9007199254740993, true, '2026-03-28T12:30:00.000456Z', '0a1b2c3d-0000-4000-8000-000000000000', '{a,b}', '{"plan": "Pro", "seats": 5, "none": null}', '{}', '', 'x', 1),
    (2, 'a_2', 'paid', 20, 2, 2, false, '2026-03-29T00:00:00Z', NULL, '{b,"c,d"}', '{"plan": "free", "tags": ["x"]}', '{}', '', 'x', 2),
    (3, '100%\\', 'shipped', NULL, 'NaN', NULL, NULL, NULL, NULL, '{}', NULL, '{}', NULL, 'x', NULL),
    (4, '', 'open', 0, -1, -1, false, '0001-01-01T00:00:00Z', NULL, NULL, '"text"', '{}', NULL, 'x', 1);
  INSERT INTO lines (order_id, sku, quantity) VALUES (1, 'x', 1), (1, 'y', NULL), (2, 'x', 7);`;
