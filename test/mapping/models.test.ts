import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";

describe("prismaSchemaOf", () => {
  it("writes the generator, the data source and one model per definition", () => {
    const text = schemaOf(
      definition({
        name: "customers",
        model: "Customer",
        table: "crm_customers",
        fields: [field("name", "String")],
      }),
    );

    expect(text).to.equal(`datasource db {
  provider = "postgresql"
}

model Customer {
  id Int @id @default(autoincrement())
  name String
  @@map("crm_customers")
}
`);
  });

  describe("writes a field of a managed table", () => {
    const cases = [
      [field("n", "Int"), "n Int"],
      [field("n", "BigInt", { isOptional: true }), "n BigInt?"],
      [field("n", "Float", { default: literal(1.5) }), "n Float @default(1.5)"],
      [field("n", "Decimal", { precision: 12, scale: 2 }), "n Decimal @db.Decimal(12, 2)"],
      [field("n", "Decimal", { default: literal("0.10") }), "n Decimal @default(0.10)"],
      [field("s", "String", { length: 40, isUnique: true }), "s String @unique @db.VarChar(40)"],
      [field("s", "String", { column: "the s" }), 's String @map("the s")'],
      [field("s", "String", { default: literal('a "b" \\ \n') }), 's String @default("a \\"b\\" \\\\ \\n")'],
      [field("s", "String", { isList: true, default: literal(["a"]) }), 's String[] @default(["a"])'],
      [
        field("s", "String", { default: { kind: "uuid" } }),
        's String @default(dbgenerated("(gen_random_uuid())::text"))',
      ],
      [field("b", "Boolean", { default: literal(false) }), "b Boolean @default(false)"],
      [field("d", "DateTime", { default: { kind: "now" } }), "d DateTime @default(now()) @db.Timestamptz(3)"],
      [
        field("d", "DateTime", { isUpdatedAt: true }),
        "d DateTime @default(now()) @updatedAt @db.Timestamptz(3)",
      ],
      [field("j", "Json", { default: literal({ a: [1] }) }), 'j Json @default("{\\"a\\":[1]}")'],
      [field("b", "Bytes"), "b Bytes"],
      [
        field("u", "Uuid", { default: { kind: "uuid" } }),
        'u String @default(dbgenerated("gen_random_uuid()")) @db.Uuid',
      ],
      [field("e", "Enum", { values: ["a", "b"], default: literal("a") }), 'e String @default("a")'],
    ] as const;
    for (const [given, line] of cases) {
      it(line, () => {
        expect(linesOf(definition({ name: "things", fields: [given] }))).to.include(line);
      });
    }
  });

  it("states no native type for a table that is not managed, except uuid", () => {
    const lines = linesOf(
      definition({
        name: "things",
        isManaged: false,
        fields: [
          field("s", "String", { length: 40 }),
          field("n", "Decimal", { precision: 12, scale: 2 }),
          field("d", "DateTime"),
          field("u", "Uuid"),
        ],
      }),
    );

    expect(lines).to.include.members(["s String", "n Decimal", "d DateTime", "u String @db.Uuid"]);
  });

  it("indexes each requested column and every foreign key, but not twice", () => {
    const lines = linesOf(
      definition({
        name: "things",
        fields: [
          field("a", "Int", { isIndexed: true }),
          field("b", "Int", { isIndexed: true, isUnique: true }),
          field("c", "Int", { references: reference("c") }),
          field("d", "Int"),
        ],
      }),
    );

    expect(lines.filter((line) => line.startsWith("@@index"))).to.deep.equal([
      "@@index([a])",
      "@@index([c])",
    ]);
  });

  describe("writes both ends of a reference", () => {
    const things = definition({ name: "things", fields: [] });

    it("to many, with the action on delete", () => {
      const text = schemaOf(
        things,
        definition({ name: "parts", fields: [field("thing_id", "Int", { references: reference("thing") })] }),
      );

      expect(text).to.include(
        '  thing Things @relation(name: "Parts_thing", fields: [thing_id], references: [id], onDelete: Cascade, onUpdate: Cascade)\n',
      );
      expect(text).to.include('  parts Parts[] @relation(name: "Parts_thing")\n');
    });

    it("to at most one when the reference is unique, and optional when the field is", () => {
      const text = schemaOf(
        things,
        definition({
          name: "parts",
          fields: [
            field("thing_id", "Int", { isUnique: true, isOptional: true, references: reference("thing") }),
          ],
        }),
      );

      expect(text).to.include("  thing Things? @relation(");
      expect(text).to.include('  parts Parts? @relation(name: "Parts_thing")\n');
    });
  });

  it("accepts a key of any name and type", () => {
    const key = keyField("invoice_id", { type: "Uuid", default: { kind: "uuid" } });

    expect(linesOf(definition({ name: "things", fields: [key] }))[0]).to.equal(
      'invoice_id String @id @default(dbgenerated("gen_random_uuid()")) @db.Uuid',
    );
  });
});

function schemaOf(...list: readonly Definition[]): string {
  return prismaSchemaOf(definitionsOf(...list));
}

function linesOf(one: Definition): string[] {
  const text = prismaSchemaOf(new Map([[one.name, one]]));
  return text
    .slice(text.indexOf("model "))
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
}

function literal(value: unknown): { kind: "literal"; value: unknown } {
  return { kind: "literal", value };
}

function reference(as: string): { resource: string; field: string; as: string; onDelete: "cascade" } {
  return { resource: "things", field: "id", as, onDelete: "cascade" };
}
