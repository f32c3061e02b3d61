import { expect } from "chai";
import { Client } from "pg";
import { serviceOfSuite } from "../support/service.ts";
import { until } from "../support/wait.ts";

const file = (name: string, model: string): string => `
name: ${name}
model: ${model}
fields:
  id: { type: Int, id: true }
  user_id: { type: Int, index: true }
triggers: [on_create]
ownerColumn: user_id
`;

describe("users whose lists together take long", () => {
  const resources = {
    "alphas.yaml": file("alphas", "Alpha"),
    "betas.yaml": file("betas", "Beta"),
    "gammas.yaml": file("gammas", "Gamma"),
  };
  const service = serviceOfSuite({ mode: "servers", resources, http: { listTimeoutMs: 60_000 } });

  it("leave a connection for the lists of another user", async () => {
    const [victim, ...others] = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(() => service.createUser()));
    const client = new Client({ connectionString: service.config.database.url });
    await client.connect();
    try {
      await client.query("BEGIN; LOCK TABLE alphas, betas IN ACCESS EXCLUSIVE MODE");
      const waiting = others.map((user, index) =>
        user.request("GET", `/resources/${index % 2 === 0 ? "alphas" : "betas"}`),
      );
      const lockedText = "SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted";
      const isLocked = async (): Promise<boolean> => (await client.query(lockedText)).rows[0].count >= 3;
      await until(isLocked, { what: "lists that wait" });

      const statuses: number[] = [];
      for (const path of ["/resources/gammas", "/resources/gammas?cursor=", "/events", "/webhook-deliveries"])
        statuses.push((await victim?.request("GET", path))?.status ?? 0);
      await client.query("COMMIT");

      expect(statuses).to.deep.equal([200, 200, 200, 200]);
      for (const { status } of await Promise.all(waiting)) expect(status).to.equal(200);
    } finally {
      await client.end();
    }
  });
});
