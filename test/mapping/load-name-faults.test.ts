import { expect } from "chai";
import { faultsOf, itRefuses, type Case } from "./mapping-folder.ts";

const references: readonly Case[] = [
  [
    "an unknown resource",
    "  a_id: { type: Int, references: custmers.id }",
    '8:34: fields.a_id.references: there is no resource "custmers"; did you mean "customers"?',
  ],
  [
    "an unknown field",
    "  a_id: { type: Int, references: customers.ident }",
    '8:34: fields.a_id.references: customers has no field "ident"; expected one of id, name, email, code',
  ],
  [
    "a reference without a field",
    "  a_id: { type: Int, references: customers }",
    "8:34: fields.a_id.references: expected <resource>.<field>, such as customers.id",
  ],
  [
    "a field that is not unique",
    "  a_id: { type: String, references: customers.name }",
    "8:37: fields.a_id.references: expected the key or a unique field; customers.name is neither",
  ],
  [
    "a field of another type",
    "  a_id: { type: String, references: customers.code }",
    "8:37: fields.a_id.references: expected the same type at both ends; a_id is String, customers.code is Uuid",
  ],
  [
    "a relation named like its field",
    "  mail: { type: String, references: customers.email }",
    "8:37: fields.mail.references: the relation needs a name other than the field's; expected it in `as`",
  ],
  [
    "a relation named like its field, and where it leads",
    "  mail: { type: String, references: customer.email }",
    "8:37: fields.mail.references: the relation needs a name other than the field's; expected it in `as`",
    '8:37: fields.mail.references: there is no resource "customer"; did you mean "customers"?',
  ],
  [
    "a relation named like another",
    "  a_id: { type: Int, references: customers.id, as: customer }",
    '8:52: fields.a_id.as: the relation would be named "customer", like another field or relation; expected another name in `as`',
  ],
  [
    "setNull where null is not allowed",
    "  a_id: { type: Int, references: customers.id, onDelete: setNull }",
    "8:58: fields.a_id.onDelete: setNull needs `optional: true`",
  ],
  [
    "an unknown action",
    "  a_id: { type: Int, references: customers.id, onDelete: delete }",
    "8:58: fields.a_id.onDelete: expected one of restrict, cascade, setNull, noAction",
  ],
  [
    "a relation name without a reference",
    "  a: { type: Int, as: b }",
    "8:23: fields.a.as: is for a field with `references` only",
  ],
];

const names: readonly Case[] = [
  [
    "an unknown owner",
    "ownerColumn: user_id",
    '8:14: ownerColumn: there is no field "user_id"; expected one of id, title, customer_id',
  ],
  [
    "an owner that cannot be one",
    "  at: { type: DateTime }\nownerColumn: at",
    "9:14: ownerColumn: expected a field of type Int, BigInt, String, which can hold the id of a user; at is DateTime",
  ],
  [
    "an unknown searchable column",
    "searchableColumns: [titel]",
    '8:21: searchableColumns[0]: there is no field "titel"; did you mean "title"?',
  ],
  [
    "a searchable number",
    "searchableColumns: [title, id]",
    "8:28: searchableColumns[1]: expected a String field, since a search compares text; id is Int",
  ],
  [
    "an old row without updates",
    "previous: true",
    "8:11: previous: only updates have an old row; expected on_update among the triggers",
  ],
  [
    "a searchable column given twice",
    "searchableColumns: [title, title]",
    '8:28: searchableColumns[1]: "title" is in the list already',
  ],
  [
    "an unknown field of the transform",
    "transform: { a: titel }",
    '8:17: transform.a: "titel" is neither a field nor a relation; did you mean "title"?',
  ],
  [
    "a step into a field",
    "transform: { a: title.b }",
    '8:17: transform.a: "title" is a field, and has no parts',
  ],
  [
    "a relation that is not loaded",
    "transform: { a: customer.id }",
    '8:17: transform.a: "customer" is not loaded; expected it in `include` of `baseQuery`',
  ],
  [
    "a relation in place of a field",
    "transform: { a: { b: customer } }\nbaseQuery: { include: { customer: true } }",
    '8:22: transform.a.b: "customer" is a relation; expected one of its fields, such as customer.id',
  ],
  [
    "an unknown field of a relation",
    "transform: { a: customer.nam }\nbaseQuery: { include: { customer: true } }",
    '8:17: transform.a: "customer.nam" is neither a field nor a relation; did you mean "name"?',
  ],
  [
    "a relation of a relation that is not loaded",
    "transform: { a: customer.boss.id }\nbaseQuery: { include: { customer: true } }",
    '8:17: transform.a: "customer.boss" is neither a field nor a relation; expected one of id, name, email, code',
  ],
  [
    "a path through many records",
    "transform: { a: customer.orders.id }\nbaseQuery: { include: { customer: { include: { orders: true } } } }",
    '8:17: transform.a: "customer.orders" leads to many records of orders; expected a relation to one; a code module can show the many',
  ],
  [
    "a name of the transform that every object has",
    "transform: { toString: id }",
    "8:14: transform.toString: the name is reserved; expected another",
  ],
  [
    "a number in the transform",
    "transform: { a: 1 }",
    "8:17: transform.a: expected the path of a field, { value: ... } or a nested object",
  ],
  [
    "a constant that JSON cannot hold, and one that lost digits",
    'transform: { a: { value: .nan }, b: { value: [9007199254740993] }, c: { value: "\\0" } }',
    "8:26: transform.a.value: expected a value that does not contain numbers that a 64-bit float cannot hold",
    "8:46: transform.b.value: expected a value that does not contain whole numbers beyond 9007199254740991, which lose digits; send them as strings",
    "8:80: transform.c.value: expected a value that does not contain NUL characters",
  ],
];

const queries: readonly Case[] = [
  ["an unknown key", "baseQuery: { were: {} }", '8:14: baseQuery.were: unknown key; did you mean "where"?'],
  [
    "an unknown relation",
    "baseQuery: { include: { custmer: true } }",
    '8:25: baseQuery.include.custmer: "custmer" is neither a field nor a relation; did you mean "customer"?',
  ],
  [
    "a field that is included",
    "baseQuery: { include: { title: true } }",
    "8:25: baseQuery.include.title: is a field, which every record has without it; expected a relation",
  ],
  [
    "an unknown argument of a relation",
    "baseQuery: { include: { customer: { inclde: {} } } }",
    '8:37: baseQuery.include.customer.inclde: unknown key; did you mean "include"?',
  ],
  [
    "an unknown direction",
    "baseQuery: { orderBy: [{ id: up }] }",
    "8:30: baseQuery.orderBy[0].id: expected asc, desc or { sort: asc, nulls: last }",
  ],
  [
    "an order of nulls where there are none",
    "baseQuery: { orderBy: { id: { sort: asc, nulls: last } } }",
    "8:29: baseQuery.orderBy.id: expected asc or desc; `nulls` is for optional fields",
  ],
  [
    "an order by an unknown field of a relation",
    "baseQuery: { orderBy: { customer: { nam: asc } } }",
    '8:37: baseQuery.orderBy.customer.nam: "nam" is neither a field nor a relation; did you mean "name"?',
  ],
  [
    "a filter on an unknown field",
    "baseQuery: { where: { OR: [{ titel: a }] } }",
    '8:30: baseQuery.where.OR[0].titel: "titel" is neither a field nor a relation; did you mean "title"?',
  ],
  [
    "an unknown comparison",
    "baseQuery: { where: { title: { contain: a } } }",
    '8:32: baseQuery.where.title.contain: unknown comparison; did you mean "contains"?',
  ],
  [
    "a list of values",
    "baseQuery: { where: { title: [a, b] } }",
    "8:30: baseQuery.where.title: expected one value, or { in: [...] }",
  ],
  [
    "a filter on the records of another resource",
    "baseQuery: { where: { customer: { orders: { sum: {} } } } }",
    "8:45: baseQuery.where.customer.orders.sum: unknown key; expected one of some, every, none",
  ],
  [
    "a relation that is included by a word",
    "baseQuery: { include: { customer: yes } }",
    "8:35: baseQuery.include.customer: expected true, or include, where, orderBy, take, skip",
  ],
  [
    "an order of one record",
    "baseQuery: { include: { customer: { orderBy: { id: asc } } } }",
    "8:37: baseQuery.include.customer.orderBy: unknown key; expected one of include",
  ],
  [
    "a part of a record",
    "baseQuery: { include: { customer: { include: { orders: { take: 1.5 } } } } }",
    "8:64: baseQuery.include.customer.include.orders.take: expected a whole number",
  ],
  [
    "a filter that is none",
    "baseQuery: { include: { customer: { include: { orders: { where: 1 } } } } }",
    "8:65: baseQuery.include.customer.include.orders.where: expected keys and values",
  ],
  [
    "a filter of included records on an unknown field",
    "baseQuery: { include: { customer: { include: { orders: { where: { x: 1 } } } } } }",
    '8:67: baseQuery.include.customer.include.orders.where.x: "x" is neither a field nor a relation; expected one of id, title, customer_id, customer',
  ],
  [
    "an order by many records",
    "baseQuery: { orderBy: { customer: { orders: { id: asc } } } }",
    "8:45: baseQuery.orderBy.customer.orders: expected { _count: asc } or { _count: desc } for a relation to many",
  ],
  [
    "a combination of no filters",
    "baseQuery: { where: { NOT: [{ id: 1 }, 2] } }",
    "8:40: baseQuery.where.NOT[1]: expected a filter, such as { status: open }",
  ],
  [
    "one value for a list of them",
    "baseQuery: { where: { id: { in: 1 } } }",
    "8:33: baseQuery.where.id.in: expected a list of values",
  ],
  [
    "a filter on a relation that is none",
    "baseQuery: { where: { customer: { is: 5 } } }",
    "8:39: baseQuery.where.customer.is: expected a filter on customers",
  ],
];

const access: readonly Case[] = [
  [
    "an unknown value of who asks",
    "access: { read: { title: $user.name } }",
    "8:26: access.read.title: there is no $user.name; expected $user.id, $user.email or $user.claims.NAME",
  ],
  [
    "a pattern of who asks",
    "access: { read: { NOT: { customer: { name: { contains: $user.email } } } } }",
    "8:56: access.read.NOT.customer.name.contains: contains cannot compare with a value of the user; expected equals or in",
  ],
  [
    "who asks, of a type that is neither an id nor an address",
    `  is_open: { type: Boolean }
  due_at: { type: DateTime, unique: true }
access:
  read: { is_open: $user.id }
  update: { NOT: { due_at: { in: [$user.id] } } }
  delete: { OR: [{ id: $user.email }, { is_open: $user.claims.staff }, { title: $user.id }] }`,
    "11:11: access.read.is_open: a field of this type is never a user's id; expected a number or a text",
    "12:35: access.update.NOT.due_at.in[0]: a field of this type is never a user's id; expected a number or a text",
    "13:20: access.delete.OR[0].id: a field of this type is never an e-mail address; expected a text",
  ],
];

const rules: readonly Case[] = [
  [
    "an unknown rule",
    "createRules: { title: requird }",
    '8:23: createRules.title: there is no rule "requird"; did you mean "required"?',
  ],
  [
    "a pattern that takes longer than the text",
    "createRules: { title: 'regex:/^(?!a)/' }",
    '8:23: createRules.title: regex: "/^(?!a)/" must be a regular expression (invalid or unsupported Perl syntax: `(?!`; look-around, back references and repeats beyond 1000 cannot be matched in linear time; one that contains | needs the list form)',
  ],
  [
    "a pattern that is too large",
    "createRules: { title: [{ not_regex: '/^.{1,600}$/' }] }",
    '8:23: createRules.title: not_regex: "/^.{1,600}$/" must be a regular expression (comes to 1203 instructions, 1000 at most: use smaller repeats, and the rules min and max for the length; one that contains | needs the list form)',
  ],
  [
    "a rule without its argument",
    "updateRules: { title: [max] }",
    "8:23: updateRules.title: max: needs 1 argument, 0 given",
  ],
  [
    "a rule for an unknown field",
    "createRules: { titel: required }",
    '8:16: createRules.titel: there is no field "titel"; did you mean "title"?',
  ],
  [
    "a look-up of an unknown field",
    "createRules: { title: 'exists:customers,nam' }",
    '8:23: createRules.title: exists: customers has no field "nam"; did you mean "name"?',
  ],
  [
    "a look-up of the field's own name",
    "createRules: { title: [{ unique: customers }] }",
    '8:23: createRules.title: unique: customers has no field "title"; expected one of id, name, email, code',
  ],
  [
    "a look-up of the last part of a nested key",
    "createRules: { title.of: 'exists:customers', title.*: 'exists:orders' }",
    '8:26: createRules.title.of: exists: customers has no field "of"; expected one of id, name, email, code',
  ],
  [
    "a look-up in a resource with a slip in its name",
    "createRules: { title: 'exists:custmers,name' }\nupdateRules: { title: [{ unique: order }] }",
    '8:23: createRules.title: exists: there is no resource "custmers"; did you mean "customers"?',
    '9:23: updateRules.title: unique: there is no resource "order"; did you mean "orders"?',
  ],
  [
    "rules that are not there",
    "createRules: { id }\nupdateRules:\n  title:",
    "8:16: createRules.id: expected rules such as required|max:40, or a list such as [required, { max: 40 }]",
    "10:9: updateRules.title: expected rules such as required|max:40, or a list such as [required, { max: 40 }]",
  ],
  [
    "rules that are no rules",
    "createRules: { title: 5 }",
    "8:23: createRules.title: expected rules such as required|max:40, or a list such as [required, { max: 40 }]",
  ],
];

/**
 * References with a fault, and its place: the relations that they would make are used in both
 * files.
 */
const brokenReferences: readonly (readonly [fields: string, place: string])[] = [
  ["customer_id: { type: Int, references: customer.id }", "references"],
  ["customer_id: { type: Int, references: customers.idd }", "references"],
  ["customer_id: { type: Int, references: customers.name }", "references"],
  ["customer_id: { type: Int, references: customers }", "references"],
  ["customer_id: { type: String, references: customers.id }", "references"],
  ["customer_id: { type: Int, references: customers.id, as: title }", "as"],
  ["customer_id: { type: Int, references: customers.id, onDelete: setNull }", "onDelete"],
  ["customer_id: { type: Itn, references: customers.id }", "type"],
  ["customer_id: { type: Int, refrences: customers.id }", "refrences"],
];

async function faultsBeside(reference: string): Promise<readonly string[]> {
  return faultsOf({
    "customers.yaml": `name: customers
model: Customer
triggers: []
fields: { id: { type: Int, id: true }, name: { type: String } }
baseQuery: { include: { orders: true } }
`,
    "orders.yaml": `name: orders
model: Order
triggers: []
fields:
  id: { type: Int, id: true }
  title: { type: String }
  ${reference}
transform: { id: id, title: titel, customer: { name: customer.name } }
baseQuery: { include: { customer: true, custmer: true }, orderBy: { titel: asc }, where: { titel: a } }
`,
  });
}

describe("checkDefinitions, of a file that names what is not there", () => {
  describe("beside a broken reference, finds all other faults and no false one", () => {
    const others = [
      "orders.yaml:8:29: transform.title",
      "orders.yaml:9:41: baseQuery.include.custmer",
      "orders.yaml:9:69: baseQuery.orderBy.titel",
      "orders.yaml:9:92: baseQuery.where.titel",
    ];
    for (const [reference, key] of brokenReferences) {
      it(reference, async () => {
        const found = await faultsBeside(reference);

        expect(found[0]).to.match(new RegExp(`^orders\\.yaml:7:\\d+: fields\\.customer_id\\.${key}: `));
        expect(found.slice(1).map((fault) => fault.split(": ").slice(0, 2).join(": "))).to.deep.equal(others);
      });
    }

    it("when either of two references is broken", async () => {
      const reference = `buyer_id: { type: Int, references: customers.idd }
  customer_id: { type: Int, references: customers.id }`;

      expect(await faultsBeside(reference)).to.have.length(5);
    });
  });
  describe("references", () => itRefuses(references));
  describe("ownerColumn, searchableColumns, transform", () => itRefuses(names));
  describe("baseQuery", () => itRefuses(queries));
  describe("access", () => itRefuses(access));
  describe("rules", () => itRefuses(rules));
});
