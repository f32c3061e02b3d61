import { expect } from "chai";
import { definitionsOf, field } from "../support/definitions.ts";
import { sceneOfSuite } from "../support/migration-scene.ts";
import { customers, withFields } from "../support/shop.ts";

describe("withWayOn", () => {
  const scene = sceneOfSuite();

  before(async () => {
    const fields = [field("name", "String"), field("city", "String", { isOptional: true })];
    await scene.migrate(definitionsOf(withFields(customers, fields)));
    await scene.client.query("INSERT INTO customers (name) VALUES ('Ann')");
  });

  for (const { title, fields, sentence } of [
    {
      title: "says how to keep the values of a column that may have another name now",
      fields: [
        field("title", "String", { isOptional: true }),
        field("nick", "String", { column: "alias", isOptional: true }),
      ],
      sentence:
        'You are about to drop the column `name` on the `customers` table, which still contains 1 non-null values. If it is now `alias` or `title`, say "column: name" there, or rename it in a migration by hand: its values stay then.',
    },
    {
      title: "says no more of a column that no other can be",
      fields: [field("city", "String", { isOptional: true })],
      sentence:
        "You are about to drop the column `name` on the `customers` table, which still contains 1 non-null values.",
    },
    {
      title: "says how to keep the values of a column that is made anew",
      fields: [field("name", "Int", { isOptional: true })],
      sentence:
        "The `name` column on the `customers` table would be dropped and recreated. This will lead to data loss. A migration by hand can keep the values: change the type there, with USING.",
    },
    {
      title: "says the same of a required column, which cannot be made anew",
      fields: [field("name", "Int"), field("city", "String", { isOptional: true })],
      sentence:
        "Changed the type of `name` on the `customers` table. No cast exists, the column would be dropped and recreated, which cannot be done since the column is required and there is data in the table. A migration by hand can keep the values: change the type there, with USING.",
    },
    {
      title: "says how rows get a value of a new column",
      fields: [field("name", "String"), field("city", "String", { isOptional: true }), field("age", "Int")],
      sentence:
        'Added the required column `age` to the `customers` table without a default value. There are 1 rows in this table, it is not possible to execute this step. Give the field a default or "optional: true", or add the column and its values in a migration by hand.',
    },
    {
      title: "says what to do about NULLs",
      fields: [field("name", "String"), field("city", "String")],
      sentence:
        "Made the column `city` on table `customers` required, but there are 1 existing NULL values. Give these rows a value first.",
    },
  ]) {
    it(title, async () => {
      const { losses, impossible } = await scene.plan(definitionsOf(withFields(customers, fields)));

      expect([...losses, ...impossible]).to.deep.equal([sentence]);
    });
  }
});
