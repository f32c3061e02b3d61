import { expect } from "chai";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { request } from "../support/service.ts";

const gadgetsYaml = (size: string, length: number): string => `
name: gadgets
model: Gadget
fields:
  id: { type: Int, id: true }
  size: { type: ${size} }
  text: { type: String, length: ${length} }
  tags: { type: String, list: true }
createRules: { size: integer, text: string, tags: array, tags.*: string }
triggers: []
`;

describe("columns that get another type, and a reload", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let api: Program;
  let token: string;

  before(async () => {
    own = await createOwnDatabase({ service: "database: { poolSize: 4 }" });
    const { env } = own;
    own.configuration.write("resources/gadgets.yaml", gadgetsYaml("Int", 40));
    await admin(["migrate"], env);
    api = await createProgram({ name: "api", env });
    await api.start();
    ({ token } = (await admin(
      ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"],
      env,
    )) as { token: string });
  });

  after(async () => {
    await api?.dispose();
    await own?.dispose();
  });

  let keys = 0;

  /** Creates records inside and outside of transactions, on every connection. */
  async function create(size: number): Promise<readonly number[]> {
    const url = `${api.origin}/svc-api/resources/gadgets`;
    const body = { size, text: "one", tags: ["a"] };
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, at) => {
        const headers: Record<string, string> =
          at % 2 === 0 ? {} : { "Idempotency-Key": `key-${(keys += 1)}` };
        return request({ url, method: "POST", token, body, headers });
      }),
    );
    return answers.map(({ status }) => status);
  }

  it("writes the values that the columns accept after the change, over connections from before", async () => {
    const created = Array.from({ length: 16 }, () => 201);
    expect(await create(1)).to.deep.equal(created);

    own.configuration.write("resources/gadgets.yaml", gadgetsYaml("BigInt", 80));
    await admin(["migrate"], own.env);
    const reloaded = api.untilLogged("the configuration was reloaded");
    api.signal("SIGHUP");
    await reloaded;

    expect(await create(3_000_000_000)).to.deep.equal(created);
  });
});
