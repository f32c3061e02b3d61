import { expect } from "chai";
import { serviceOfSuite, type TestUser } from "../support/service.ts";

describe("GET of one token", () => {
  const service = serviceOfSuite({ mode: "servers", resources: {} });
  let admin: TestUser;
  let ada: TestUser;

  before(async () => {
    admin = await service.createUser({ isAdmin: true });
    ada = await service.createUser();
  });

  it("shows it like the list does, at Location, without its text", async () => {
    const made = await ada.request("POST", "/tokens", { name: "own" });
    const given = await admin.request("POST", `/users/${ada.id}/tokens`, { name: "given" });

    for (const [user, { body, headers }] of [
      [ada, made],
      [admin, given],
    ] as const) {
      const path = new URL(headers.get("location") ?? "").pathname.replace("/svc-api", "");
      const shown = await user.request("GET", path);
      const { token: _, ...rest } = body;
      expect([shown.status, shown.body]).to.deep.equal([200, rest]);
    }
  });

  it("shows nobody else's", async () => {
    const [token] = await service.api.tokens.list(admin.id);

    for (const path of [`/tokens/${token?.id}`, "/tokens/x", "/tokens/999999"])
      expect((await ada.request("GET", path)).status, path).to.equal(404);
    expect((await ada.request("GET", `/users/${admin.id}/tokens/${token?.id}`)).status).to.equal(403);
    expect((await admin.request("GET", `/users/${ada.id}/tokens/${token?.id}`)).status).to.equal(404);
  });
});
