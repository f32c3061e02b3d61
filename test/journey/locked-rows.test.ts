import { expect } from "chai";
import { Client } from "pg";
import { serviceOfSuite } from "../support/service.ts";
import { until } from "../support/wait.ts";

const file = (name: string, model: string): string => `
name: ${name}
model: ${model}
fields:
  id: { type: Int, id: true }
  reference: { type: String, unique: true }
  user_id: { type: Int, index: true }
triggers: [on_create]
createRules: { reference: "required|string" }
ownerColumn: user_id
`;

describe("users who together wait for the same rows", () => {
  const resources = { "alphas.yaml": file("alphas", "Alpha"), "betas.yaml": file("betas", "Beta") };
  const service = serviceOfSuite({ mode: "servers", resources });

  it("leave connections for the reads, writes and batches of another user", async () => {
    const [victim, ...others] = await Promise.all([1, 2, 3, 4, 5].map(() => service.createUser()));
    const client = new Client({ connectionString: service.config.database.url });
    await client.connect();
    try {
      await client.query("BEGIN; INSERT INTO alphas (reference, user_id) VALUES ('x', 1)");
      await client.query("INSERT INTO betas (reference, user_id) VALUES ('x', 1)");
      const waiting = others.flatMap((user) =>
        ["alphas", "betas", "alphas", "betas", "alphas", "betas"].map((name) =>
          user.request("POST", `/resources/${name}`, { reference: "x" }),
        ),
      );
      const lockedText = `SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      const isLocked = async (): Promise<boolean> => {
        // Otherwise a transaction never sees connections that are newer than its first look.
        await client.query("SELECT pg_stat_clear_snapshot()");
        return (await client.query(lockedText)).rows[0].count >= 4;
      };
      await until(isLocked, { what: "writes that wait" });

      const statuses: number[] = [];
      for (const [method, path, body] of [
        ["GET", "/whoami", undefined],
        ["GET", "/resources/alphas", undefined],
        ["GET", "/resources/alphas/0", undefined],
        ["POST", "/resources/alphas", { reference: "y" }],
        ["POST", "/resources/betas", { reference: "y" }],
        ["POST", "/resources/betas/batch", { operations: [{ method: "create", data: { reference: "z" } }] }],
      ] as const)
        statuses.push((await victim?.request(method, path, body))?.status ?? 0);
      await client.query("COMMIT");

      expect(statuses).to.deep.equal([200, 200, 404, 201, 201, 200]);
      for (const { status } of await Promise.all(waiting)) expect(status).to.equal(422);
    } finally {
      await client.end();
    }
  });
});
