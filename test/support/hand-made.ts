/** A change by hand of the tables of test/support/shop.ts. */
interface HandMade {
  readonly title: string;
  readonly sql: string;
  /** Expected output of `psql` (`\d+ orders`, `\d+ customers`) after the change. */
  readonly shows: RegExp;
  /** Entry in the plan's list of objects that are left alone. */
  readonly says: RegExp;
}

const added: readonly HandMade[] = [
  {
    title: "an index",
    sql: "CREATE INDEX hand_made ON orders (amount)",
    shows: /"hand_made" btree \(amount\)/,
    says: /index hand_made of the table orders \(CREATE INDEX hand_made/,
  },
  {
    title: "an index on a column that is yet to have one of the service's",
    sql: "CREATE INDEX hand_made ON orders (user_id)",
    shows: /"hand_made" btree \(user_id\)/,
    says: /index hand_made/,
  },
  {
    title: "a unique index",
    sql: "CREATE UNIQUE INDEX hand_made ON orders (reference, user_id)",
    shows: /"hand_made" UNIQUE, btree/,
    says: /unique index hand_made/,
  },
  {
    title: "a unique index on a column that has one of the service's",
    sql: "CREATE UNIQUE INDEX hand_made ON orders (reference)",
    shows: /"hand_made" UNIQUE, btree/,
    says: /unique index hand_made/,
  },
  {
    title: "a partial index",
    sql: "CREATE UNIQUE INDEX hand_made ON orders (amount) WHERE status = 'open'",
    shows: /"hand_made" UNIQUE, btree \(amount\) WHERE/,
    says: /unique index hand_made/,
  },
  {
    title: "an index on an expression",
    sql: "CREATE INDEX hand_made ON customers (lower(name))",
    shows: /"hand_made" btree \(lower/,
    says: /index hand_made of the table customers/,
  },
  {
    title: "a hash index",
    sql: "CREATE INDEX hand_made ON customers USING hash (name)",
    shows: /"hand_made" hash/,
    says: /index hand_made/,
  },
  {
    title: "an empty column",
    sql: "ALTER TABLE orders ADD hand_made text",
    shows: /hand_made\|text/,
    says: /column hand_made of the table orders \(text\)/,
  },
  {
    title: "a column with a default, values and an index",
    sql: "ALTER TABLE orders ADD hand_made int NOT NULL DEFAULT 7; CREATE INDEX ON orders (hand_made)",
    shows: /hand_made\|integer\|\|not null\|7[^]*"orders_hand_made_idx"/,
    says: /column hand_made[^]*index orders_hand_made_idx/,
  },
  {
    title: "a column that must have a value",
    sql: "ALTER TABLE customers ADD hand_made int NOT NULL",
    shows: /hand_made\|integer\|\|not null/,
    says: /column hand_made/,
  },
  {
    title: "a column that counts itself",
    sql: "ALTER TABLE orders ADD hand_made serial",
    shows: /hand_made\|integer\|\|not null\|nextval\('orders_hand_made_seq/,
    says: /column hand_made/,
  },
  {
    title: "an identity column",
    sql: "ALTER TABLE orders ADD hand_made int GENERATED ALWAYS AS IDENTITY",
    shows: /hand_made\|integer\|\|not null\|generated always as identity/,
    says: /column hand_made/,
  },
  {
    title: "a computed column",
    sql: "ALTER TABLE orders ADD hand_made numeric GENERATED ALWAYS AS (amount * 2) STORED",
    shows: /hand_made\|numeric\|\|\|generated always as/,
    says: /column hand_made/,
  },
  {
    title: "a type, and a column of it",
    sql: "CREATE TYPE mood AS ENUM ('good'); ALTER TABLE orders ADD hand_made mood DEFAULT 'good'",
    shows: /hand_made\|mood/,
    says: /column hand_made of the table orders \(mood/,
  },
  {
    title: "a domain, and a column of it",
    sql: "CREATE DOMAIN short AS text CHECK (length(value) < 9); ALTER TABLE orders ADD hand_made short[]",
    shows: /hand_made\|short\[\]/,
    says: /column hand_made/,
  },
  {
    title: "a check",
    sql: "ALTER TABLE orders ADD CONSTRAINT hand_made CHECK (amount > 0)",
    shows: /"hand_made" CHECK/,
    says: /check hand_made/,
  },
  {
    title: "a check with a name like the service's",
    sql: "ALTER TABLE orders ADD CONSTRAINT orders_amount_svc_values CHECK (amount > 0)",
    shows: /"orders_amount_svc_values" CHECK/,
    says: /check orders_amount_svc_values/,
  },
  {
    title: "a unique constraint",
    sql: "ALTER TABLE orders ADD CONSTRAINT hand_made UNIQUE (user_id, amount)",
    shows: /"hand_made" UNIQUE CONSTRAINT/,
    says: /unique constraint hand_made/,
  },
  {
    title: "a foreign key to a table of somebody else",
    sql: "CREATE TABLE people (id int PRIMARY KEY); ALTER TABLE orders ADD CONSTRAINT hand_made FOREIGN KEY (user_id) REFERENCES people",
    shows: /"hand_made" FOREIGN KEY \(user_id\) REFERENCES people/,
    says: /foreign key hand_made/,
  },
  {
    title: "a second foreign key on a column that has one",
    sql: "ALTER TABLE orders ADD CONSTRAINT hand_made FOREIGN KEY (customer_id) REFERENCES customers ON DELETE RESTRICT",
    shows: /"hand_made" FOREIGN KEY \(customer_id\)/,
    says: /foreign key hand_made/,
  },
  {
    title: "a foreign key from a table of somebody else",
    sql: "CREATE TABLE letters (customer_id int CONSTRAINT hand_made REFERENCES customers)",
    shows: /TABLE "letters" CONSTRAINT "hand_made" FOREIGN KEY/,
    says: /^(?![^]*hand_made)/,
  },
  {
    title: "an exclusion constraint",
    sql: "ALTER TABLE orders ADD CONSTRAINT hand_made EXCLUDE USING btree (amount WITH =)",
    shows: /"hand_made" EXCLUDE/,
    says: /exclusion constraint hand_made/,
  },
  {
    title: "a trigger",
    sql:
      "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; " +
      "CREATE TRIGGER hand_made BEFORE UPDATE OF amount ON orders FOR EACH ROW EXECUTE FUNCTION stay()",
    shows: /hand_made BEFORE UPDATE OF amount/,
    says: /trigger hand_made/,
  },
  {
    title: "a view",
    sql: "CREATE VIEW hand_made AS SELECT amount FROM orders",
    shows: /^view hand_made/m,
    says: /view hand_made of the table orders/,
  },
  {
    title: "a materialized view",
    sql: "CREATE MATERIALIZED VIEW hand_made AS SELECT name FROM customers",
    shows: /^materialized view hand_made/m,
    says: /materialized view hand_made of the table customers/,
  },
  {
    title: "a rule",
    sql: "CREATE RULE hand_made AS ON DELETE TO orders WHERE old.id < 0 DO INSTEAD NOTHING",
    shows: /hand_made AS/,
    says: /rule hand_made/,
  },
  {
    title: "a policy",
    sql: "CREATE POLICY hand_made ON orders USING (true)",
    shows: /POLICY "hand_made"/,
    says: /policy hand_made/,
  },
  {
    title: "statistics",
    sql: "CREATE STATISTICS hand_made ON amount, user_id FROM orders",
    shows: /hand_made" ON amount, user_id|hand_made ON amount, user_id/,
    says: /statistics object hand_made/,
  },
  {
    title: "a comment",
    sql: "COMMENT ON COLUMN orders.amount IS 'hand made'",
    shows: /amount\|numeric\(12,2\).*\|hand made/,
    says: /^(?![^]*hand_made)/,
  },
];

const changed: readonly HandMade[] = [
  {
    title: "a default where the mapping file has none",
    sql: "ALTER TABLE orders ALTER amount SET DEFAULT 3",
    shows: /amount\|numeric\(12,2\)\|\|not null\|3/,
    says: /column amount .*changed by hand.*DROP DEFAULT/,
  },
  {
    title: "another default than the mapping file's",
    sql: "ALTER TABLE orders ALTER status SET DEFAULT 'paid'",
    shows: /status\|text\|\|not null\|'paid'::text/,
    says: /column status .*changed by hand.*SET DEFAULT 'open'/,
  },
  {
    title: "a counter that is taken away",
    sql: "ALTER TABLE customers ALTER id DROP DEFAULT",
    shows: /id\|integer\|\|not null\|\|/,
    says: /column id .*changed by hand/,
  },
  {
    title: "NOT NULL where the mapping file has `optional`",
    sql: "ALTER TABLE customers ALTER city SET NOT NULL",
    shows: /city\|text\|\|not null/,
    says: /column city .*changed by hand.*DROP NOT NULL/,
  },
  {
    title: "NULL where the mapping file has none",
    sql: "ALTER TABLE customers ALTER name DROP NOT NULL",
    shows: /name\|text\|\|\|/,
    says: /column name .*changed by hand.*SET NOT NULL/,
  },
  {
    title: "a wider type",
    sql: "ALTER TABLE orders ALTER reference TYPE varchar(80)",
    shows: /reference\|character varying\(80\)/,
    says: /column reference .*changed by hand/,
  },
];

const changedBesideRows: readonly HandMade[] = [
  {
    title: "another type",
    sql:
      "INSERT INTO customers (name) VALUES ('Ann'); INSERT INTO orders (reference, amount, user_id, customer_id) VALUES ('R', 1, 1, 1); " +
      "ALTER TABLE orders ALTER user_id TYPE bytea USING ''",
    shows: /user_id\|bytea\|\|not null/,
    says: /column user_id .*changed by hand/,
  },
  {
    title: "a default that is taken away",
    sql: "ALTER TABLE orders ALTER status DROP DEFAULT",
    shows: /status\|text\|\|not null\|\|/,
    says: /column status .*changed by hand/,
  },
];

/** One object or change of every kind, in groups that one database can have at once. */
export const handMade: Readonly<Record<string, readonly HandMade[]>> = {
  "which is new": added.map(numbered),
  "which is changed": changed,
  "which is changed in another way, beside rows": changedBesideRows,
};

/** Gives an object its own name. */
function numbered({ title, sql, shows, says }: HandMade, index: number): HandMade {
  const named = (text: string): string =>
    text.replaceAll("hand_made", `hand_made_${String(index).padStart(2, "0")}`);
  const sought = ({ source, flags }: RegExp): RegExp => new RegExp(named(source), flags);
  return { title, sql: named(sql), shows: sought(shows), says: sought(says) };
}
