import { expect } from "chai";
import { isDeepStrictEqual } from "node:util";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { createSql } from "../../src/db/sql.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { recordDatabaseOf } from "./serving.ts";
import { ask, startApi, type Api } from "./serving-api.ts";

const documents = definitionsOf(
  definition({
    name: "documents",
    model: "Document",
    fields: [
      field("content", "Json", { isOptional: true }),
      field("list", "Json", { isList: true }),
      field("preset", "Json", {
        default: { kind: "literal", value: { $type: "Json", value: "1", constructor: { name: "x" } } },
      }),
    ],
  }),
);

/** As texts: a literal with `__proto__` would set the prototype. */
const cores: readonly string[] = [
  ...[
    "BigInt",
    "DateTime",
    "Decimal",
    "Bytes",
    "Json",
    "Enum",
    "FieldRef",
    "Raw",
    "Param",
    "DbNull",
    "x",
  ].flatMap((type) =>
    ["1", '"1"', '"DbNull"', "null", '{"name":"x","type":"Int"}', "[1]", '"aGk="'].map(
      (value) => `{"$type":"${type}","value":${value}}`,
    ),
  ),
  ...["true", "1", "null", "{}", "[]", '""'].map((type) => `{"$type":${type},"value":1}`),
  ...["param", "generatorCall", "bigint", "date", "decimal", "bytes", "array"].flatMap((type) =>
    ["1", '{"name":"now","args":[]}'].map((value) => `{"prisma__type":"${type}","prisma__value":${value}}`),
  ),
  ...["true", "false", '"true"'].map((flag) => `{"__prismaRawParameters__":${flag},"values":[1,2]}`),
  '{"__prismaRawParameters__":true}',
  ...[
    "toJSON",
    "__proto__",
    "constructor",
    "toString",
    "then",
    "_ref",
    "set",
    "push",
    "equals",
    "_getName",
    "$",
  ].flatMap((key) =>
    ["1", '{"name":"Decimal"}', '{"$type":"Json"}', "[1]"].map((value) => `{"${key}":${value}}`),
  ),
  '{"s":1,"e":0,"d":[1],"constructor":{"name":"Decimal"}}',
  '{"constructor":1,"other":[{"$type":"Json"}]}',
  '{"constructor":1,"$type":"Json","value":"1"}',
  '{"constructor":null}',
  '{"type":"Buffer","data":[1,2]}',
];

const shapes: readonly ((core: string) => string)[] = [
  (core) => core,
  (core) => `{"a":[{"b":{"c":[${core},1]}}]}`,
  (core) => `[${core},{"$type":"Raw","value":${core}}]`,
  (core) => `{"constructor":{"name":"Object"},"a":${core}}`,
];

/** Texts that may be refused; every other document has to be stored. */
const suspicious = /__prismaRawParameters__|__proto__|"constructor".*"\$type"/;

describe("Json values", () => {
  const database = databaseOfSuite({ poolSize: 4 });
  let models: ModelsClient;
  let api: Api;

  before(async () => {
    await database.pool.query(
      "CREATE TABLE documents (id serial PRIMARY KEY, content jsonb, list jsonb[] NOT NULL DEFAULT '{}', preset jsonb NOT NULL)",
    );
    models = await openModelsClient({
      schemaText: prismaSchemaOf(documents),
      pool: database.pool,
      isEmbedded: false,
    });
    const sql = createSql({ pool: database.pool, isEmbedded: false });
    api = await startApi(
      {
        url: database.url,
        database,
        models,
        sql,
        records: recordDatabaseOf({ database, models }),
        fallbacks: [],
        statements: () => [],
        close: async () => {},
      },
      documents,
    );
  });

  after(async () => {
    await api.server.close();
    await models.close();
  });

  /** Returns the stored row of a record. */
  async function stored(id: number): Promise<unknown> {
    const text = "SELECT to_jsonb(documents) - 'id' AS row FROM documents WHERE id = $1";
    const { rows } = await database.pool.query<{ readonly row: unknown }>(text, [id]);
    return rows[0]?.row;
  }

  it("are stored as sent, by create and by update, or refused", async () => {
    const first = await ask(api, "root", "POST /documents", { list: [] });
    const { id: kept } = first.json as { readonly id: number };
    const wrong: string[] = [];
    let taken = 0;
    for (const document of cores.flatMap((core) => shapes.map((shape) => shape(core)))) {
      // The API treats blank texts as null before the validation.
      const clean = JSON.parse(document, (_, value: unknown) => (value === "" ? null : value)) as unknown;
      const sent = `{"content":${document},"list":[${document},1],"preset":${document}}`;
      const want = { content: clean, list: [clean, 1], preset: clean };
      for (const request of ["POST /documents", `PUT /documents/${kept}`]) {
        const { status, json } = await ask(api, "root", request, sent);
        if (status === 422 && suspicious.test(document)) continue;
        const { id } = json as { readonly id: number };
        const isSame = status < 300 && isDeepStrictEqual(await stored(id), want);
        if (isSame && isDeepStrictEqual(json, { id, ...want })) taken++;
        else wrong.push(`${request} ${document}: ${status} ${JSON.stringify(json)}`);
      }
    }

    expect(wrong).to.deep.equal([]);
    expect(taken).to.be.above(800);
  });

  const refused: readonly (readonly [document: string, fault: string])[] = [
    ['{"__prismaRawParameters__":true,"values":[1]}', 'the key "__prismaRawParameters__"'],
    ['[[{"a":{"__prismaRawParameters__":false}}]]', 'the key "__prismaRawParameters__"'],
    ['[{"a":{"__proto__":{"b":1}}}]', 'the key "__proto__"'],
    ['{"$type":"Raw","value":{"__prismaRawParameters__":true}}', 'the key "__prismaRawParameters__"'],
    ['{"constructor":{"a":{"$type":"Json"}}}', 'a "$type" within an object that has the key "constructor"'],
  ];
  for (const [document, fault] of refused)
    it(`are refused by name: ${document}`, async () => {
      const body = `{"content":${document},"list":[1,${document}]}`;

      for (const request of ["POST /documents", "PUT /documents/1"]) {
        const answer = await ask(api, "root", request, body);

        expect(answer.status).to.equal(422);
        expect((answer.json as { readonly errors: unknown }).errors).to.deep.equal({
          content: [`The content field must not contain ${fault}.`],
          "list.1": [`The list.1 field must not contain ${fault}.`],
        });
      }
    });

  it("of a default are stored as the mapping file has them", async () => {
    const answer = await ask(api, "root", "POST /documents", { list: [] });

    expect(await stored((answer.json as { readonly id: number }).id)).to.deep.equal({
      content: null,
      list: [],
      preset: { $type: "Json", value: "1", constructor: { name: "x" } },
    });
  });
});
