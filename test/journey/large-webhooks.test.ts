import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { serviceOfSuite } from "../support/service.ts";

describe("webhooks that are too large for an answer together", () => {
  const service = serviceOfSuite({
    mode: "servers",
    resources: { "notes.yaml": notesYaml },
    http: { memoryBudgetBytes: 32 * 1024 ** 2 },
  });

  it("are refused to an admin, who lists them by small pages, or those of a user", async () => {
    const admin = await service.createUser({ isAdmin: true });
    const [few, many] = [await service.createUser(), await service.createUser()];
    for (const [user, count] of [
      [few, 1],
      [many, 200],
    ] as const)
      await service.infrastructure.sql(
        `INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, encrypted_secret, secret_hint, filter)
         SELECT $1, 'https://example.com', 'notes', '{on_create}', false, '', 'hint', jsonb_build_object('text', repeat('x', 16000))
         FROM generate_series(1, $2)`,
        [user.id, count],
      );

    const all = await admin.request("GET", "/webhooks?user_id=*");
    const first = await admin.request("GET", "/webhooks?user_id=*&per_page=15");
    const next = await admin.request("GET", "/webhooks?user_id=*&cursor=");
    const own = await admin.request("GET", `/webhooks?user_id=${few.id}`);

    expect(all.status).to.equal(422);
    expect(all.body.errors).to.deep.equal({
      user_id: [
        "There are more webhooks than an answer has; ask for fewer by per_page, for those of one user, or filter them.",
      ],
    });
    expect(first.body).to.deep.include({ total: 201, last_page: 14 });
    for (const { body } of [first, next]) expect(body.data).to.have.length(15);
    expect(own.body.data).to.have.length(1);
  });
});
