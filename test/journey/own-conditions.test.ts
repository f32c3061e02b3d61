import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";

describe("a condition on a webhook, a user or a token, which have no ETag", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });
  let admin: TestUser;
  let webhook: string;

  before(async () => {
    admin = await service.createUser({ isAdmin: true });
    const asked = { url: "http://127.0.0.1:9/", resource: "notes", events: ["on_create"] };
    webhook = `/webhooks/${(await admin.request("POST", "/webhooks", asked)).body.id}`;
  });

  const send = (method: string, path: string, headers: Record<string, string>): Promise<Answer> =>
    request({
      url: service.baseUrl + path,
      method,
      token: admin.token,
      headers,
      ...(method === "DELETE" ? {} : { body: {} }),
    });

  it("is 412 where it cannot hold, and changes nothing", async () => {
    const { id } = (await admin.request("POST", "/tokens", { name: "x" })).body;
    const answers = [
      await send("PATCH", webhook, { "If-Match": '"a"' }),
      await send("DELETE", webhook, { "If-Match": 'W/"a", "b"' }),
      await send("PUT", webhook, { "If-None-Match": "*" }),
      await send("PATCH", `/users/${admin.id}`, { "If-Match": '"a"' }),
      await send("DELETE", `/tokens/${id}`, { "If-Match": '"a"' }),
    ];

    for (const { status, body } of answers)
      expect([status, body.code]).to.deep.equal([412, "record.changed"]);
    expect(answers[0]?.body.message).to.match(/^Only records of resources have an ETag\./);
    expect((await admin.request("GET", webhook)).status).to.equal(200);
    expect((await admin.request("GET", `/tokens/${id}`)).body.revoked_at).to.equal(null);
  });

  it("comes after the 404 of what is not there, and the 405", async () => {
    const paths = ["/webhooks/999999", "/users/999999", "/tokens/999999", "/webhooks/preview"];
    const answers: number[] = [];
    for (const path of paths)
      answers.push(
        (await send(path.startsWith("/users") ? "PATCH" : "DELETE", path, { "If-Match": '"a"' })).status,
      );

    expect(answers).to.deep.equal([404, 404, 404, 405]);
  });

  it("is 400 where it cannot be read, and nothing where it holds", async () => {
    expect((await send("PATCH", webhook, { "If-Match": "a" })).status).to.equal(400);
    expect((await send("PATCH", webhook, { "If-Match": "*", "If-None-Match": '"a"' })).status).to.equal(200);
  });
});
