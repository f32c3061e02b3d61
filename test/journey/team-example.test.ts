import { readFileSync } from "node:fs";
import { expect } from "chai";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/wait.ts";
import { serviceOfSuite, type TestUser } from "../support/service.ts";

const resources = Object.fromEntries(
  ["projects.yaml", "project_members.yaml"].map((name) => [
    name,
    readFileSync(`config/example-team/${name}`, "utf8"),
  ]),
);

describe("config/example-team", () => {
  const service = serviceOfSuite({ mode: "servers", resources });
  let lead: TestUser;
  let member: TestUser;
  let stranger: TestUser;

  before(async () => {
    [lead, member, stranger] = [
      await service.createUser(),
      await service.createUser(),
      await service.createUser(),
    ];
  });

  it("shows a project only to its members, and lets only its lead change it and them", async () => {
    const { body: project } = await lead.request("POST", "/resources/projects", { name: "Apollo" });
    const path = `/resources/projects/${project.id}`;
    const invite = (by: TestUser, user: TestUser): Promise<number> =>
      by
        .request("POST", "/resources/project_members", { project_id: project.id, user_id: user.id })
        .then(({ status }) => status);

    expect((await member.request("GET", path)).status).to.equal(403);
    expect(await invite(lead, member)).to.equal(201);
    // A stranger does not see the project; a member may refer to it, but may not add members.
    expect([await invite(stranger, stranger), await invite(member, stranger)]).to.deep.equal([422, 403]);

    const seen = await member.request("GET", "/resources/projects?include=project_members");
    expect(seen.body.data.map(({ name }: { name: string }) => name)).to.deep.equal(["Apollo"]);
    expect(seen.body.data[0].project_members).to.have.length(1);
    expect((await stranger.request("GET", "/resources/projects")).body.total).to.equal(0);
    expect((await stranger.request("GET", "/resources/project_members")).body.total).to.equal(0);
    const renames = [lead, member, stranger].map((user) => user.request("PATCH", path, { name: "Apollo 2" }));
    expect((await Promise.all(renames)).map(({ status }) => status)).to.deep.equal([200, 403, 403]);
  });

  it("sends the changes of a project to its lead and its members", async () => {
    const receiver = await startReceiver();
    try {
      for (const [name, user] of Object.entries({ lead, member, stranger })) {
        const body = { url: `${receiver.url}/${name}`, resource: "projects", events: ["on_update"] };
        expect((await user.request("POST", "/webhooks", body)).status).to.equal(201);
      }
      const [project] = (await lead.request("GET", "/resources/projects")).body.data;
      await lead.request("PATCH", `/resources/projects/${project.id}`, { name: "Apollo 11" });

      // The last change of the previous test may still be on its way, and then also goes to these
      // webhooks.
      const told = (): string[] =>
        receiver.received
          .filter(({ rawBody }) => JSON.parse(rawBody.toString()).data.name === "Apollo 11")
          .map(({ path }) => path);
      await until(() => told().length >= 2, { what: "two deliveries of the change" });
      expect(told().toSorted()).to.deep.equal(["/lead", "/member"]);
    } finally {
      await receiver.close();
    }
  });
});
