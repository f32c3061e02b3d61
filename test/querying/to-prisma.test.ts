import { expect } from "chai";
import { conditionOf } from "../../src/querying/prisma-where.ts";
import { prismaWhereOf } from "../../src/querying/to-prisma.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

describe("prismaWhereOf", () => {
  const notes = definition({ name: "notes", fields: [field("text", "String")] });

  for (const filter of [
    { contains: "a_b" },
    { contains: "" },
    { startsWith: "a" },
    { startsWith: "" },
    { endsWith: "b" },
    { contains: "A", mode: "insensitive" },
  ])
    it(`returns ${JSON.stringify(filter)} of a rule of access`, () => {
      const condition = conditionOf(notes, definitionsOf(notes), { text: filter });

      expect(condition && prismaWhereOf(condition)).to.deep.equal({ text: filter });
    });
});
