import { expect } from "chai";
import { findSilentSubscriptions } from "../../src/subscriptions/silent-subscriptions.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { definition, definitionsOf, ownersOnly } from "../support/definitions.ts";

describe("findSilentSubscriptions", () => {
  const scene = useCoreScene();

  it("counts active webhooks whose users are no admins of a resource that only these read", async () => {
    const [user, admin, keeper] = [
      await scene.work.addUser(),
      await scene.work.addUser({ isAdmin: true }),
      await scene.work.addUser({ email: "Keeper@example.com" }),
    ];
    for (const resource of ["notes", "ledgers", "open"])
      for (const { id } of [user, admin, keeper]) await scene.work.addSubscription({ userId: id, resource });
    await scene.work.addSubscription({ userId: user.id, resource: "notes", isActive: false });
    const definitions = definitionsOf(
      definition({ name: "notes", fields: [] }),
      definition({
        name: "ledgers",
        fields: [],
        isAdmin: { kind: "emails", emails: ["keeper@EXAMPLE.com"] },
      }),
      definition({ name: "open", fields: [], access: { ...ownersOnly, read: { kind: "everyone" } } }),
      definition({ name: "coded", fields: [], code: { isAdmin: () => false } }),
    );

    expect(await findSilentSubscriptions(scene.core.sql, definitions)).to.deep.equal([
      { resource: "notes", count: 2 },
      { resource: "ledgers", count: 2 },
    ]);
  });
});
