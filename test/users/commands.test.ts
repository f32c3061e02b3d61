import { callerOfToken } from "../support/callers.ts";
import { CommanderError } from "commander";
import { expect } from "chai";
import { OperatorError } from "../../src/kit/errors.ts";
import { useUserCommands, type Json } from "./commands-scene.ts";

describe("user commands", () => {
  const scene = useUserCommands();
  const { run, json } = scene;

  const ada = ["create-user", "--name", "Ada", "--email", "ada@example.com"];

  describe("create-user", () => {
    it("creates a user with a token that works", async () => {
      const created = await json(...ada);

      expect(created).to.have.all.keys(
        "id",
        "name",
        "email",
        "is_admin",
        "token",
        "token_id",
        "token_name",
        "token_expires_at",
      );
      expect(created).to.include({
        id: 1,
        name: "Ada",
        email: "ada@example.com",
        is_admin: false,
        token_name: "default",
        token_expires_at: null,
      });
      expect(await callerOfToken(scene.tokens, String(created["token"]))).to.deep.equal({
        id: 1,
        name: "Ada",
        email: "ada@example.com",
        isAdmin: false,
        claims: {},
      });
    });

    it("prints the token once, and says beside the answer that it is not shown again", async () => {
      const { stdout, stderr } = await run(ada);

      expect(stdout.match(/svc_[0-9A-Za-z]{40,}/g)).to.have.length(1);
      expect(stderr).to.equal("This is the only time that the token is shown. Keep it in a safe place.\n");
      expect((await run(["tokens", "list", "--user", "1"])).stdout).not.to.contain("svc_");
    });

    it("takes --admin, --token-name and --expires-in", async () => {
      const before = Date.now();
      const created = await json(...ada, "--admin", "--token-name", "ci", "--expires-in", "365d");

      expect(created).to.include({ is_admin: true, token_name: "ci" });
      expect(Date.parse(String(created["token_expires_at"])) - before).to.be.within(
        365 * 86_400_000,
        365 * 86_400_000 + 60_000,
      );
    });

    it("creates no token with --no-token", async () => {
      expect(await json(...ada, "--no-token")).to.deep.equal({
        id: 1,
        name: "Ada",
        email: "ada@example.com",
        is_admin: false,
      });
      expect(await scene.tokens.list(1)).to.deep.equal([]);
    });

    it("makes no user when its token cannot be made, so that the command can be repeated", async () => {
      await scene.core.sql("ALTER TABLE svc.tokens ADD CONSTRAINT no_more CHECK (false) NOT VALID");
      const { error } = await run(ada);
      await scene.core.sql("ALTER TABLE svc.tokens DROP CONSTRAINT no_more");

      expect(String(error)).to.contain("no_more");
      expect(await json<Json[]>("users", "list")).to.deep.equal([]);
      expect(await json(...ada)).to.include({ email: "ada@example.com", token_name: "default" });
    });

    for (const email of ["ada@example.com", "ADA@Example.com"]) {
      it(`refuses ${email} when ada@example.com exists`, async () => {
        await run(ada);

        const { error, stdout } = await run(["create-user", "--name", "Other", "--email", email]);

        expect(error)
          .to.be.instanceOf(OperatorError)
          .with.property("message")
          .that.contains(`already a user with the e-mail address ${email}`);
        expect(stdout).to.equal("");
        expect(await json<Json[]>("users", "list")).to.have.length(1);
      });
    }

    it("accepts an address that another one matches as a pattern", async () => {
      await run(["create-user", "--name", "Other", "--email", "a.b@example.com"]);

      const { error } = await run(["create-user", "--name", "Ada", "--email", "a_b@example.com"]);

      expect(error).to.equal(undefined);
    });

    it("asks a person for missing values, until the answer is valid", async () => {
      const { error, asked, stderr } = await run(
        ["create-user"],
        ["", "Ada", "nonsense", " ada@example.com "],
      );

      expect(error).to.equal(undefined);
      expect(asked).to.deep.equal(["Name: ", "Name: ", "E-mail: ", "E-mail: "]);
      expect(stderr).to.contain("A name is needed.\n");
      expect((await json<Json[]>("users", "list"))[0]).to.include({ name: "Ada", email: "ada@example.com" });
    });

    it("asks nothing that was given", async () => {
      expect((await run(["create-user", "--name", "Ada"], ["ada@example.com"])).asked).to.deep.equal([
        "E-mail: ",
      ]);
    });

    for (const [what, args, text] of [
      ["name and address missing where nobody is to be asked", ["create-user"], "missing --name and --email"],
      [
        "the address missing where nobody is to be asked",
        ["create-user", "--name", "Ada"],
        "missing --email",
      ],
      ["an empty name", ["create-user", "--name", " ", "--email", "a@b.c"], "A name is needed."],
      ["a bad address", ["create-user", "--name", "A", "--email", "nonsense"], "An e-mail address is needed"],
      ["a bad duration", [...ada, "--expires-in", "soon"], "A duration is a whole number"],
      ["a duration of more than a century", [...ada, "--expires-in", "36501d"], "at most 36500d"],
      ["--no-token with --expires-in", [...ada, "--no-token", "--expires-in", "1d"], "cannot be used"],
      ["--no-token with --token-name", [...ada, "--no-token", "--token-name", "x"], "cannot be used"],
      ["an unknown option", [...ada, "--nonsense"], "unknown option"],
    ] as const) {
      it(`is wrong usage with ${what}`, async () => {
        const { error, stderr, stdout } = await run(args);

        expect(error).to.be.instanceOf(CommanderError);
        expect(stderr).to.contain(text);
        expect(stdout).to.equal("");
        expect(await scene.core.prisma.user.count()).to.equal(0);
      });
    }
  });

  describe("users", () => {
    it("lists no users as an empty list, with a hint for people how to make one", async () => {
      expect(await json<Json[]>("users", "list")).to.deep.equal([]);
      expect((await run(["users", "list"])).stdout).to.equal(
        "There are no users. Make one with: svc-admin create-user\n",
      );
    });

    it("lists by id, as a table for people", async () => {
      await run(ada);
      await run(["create-user", "--name", "Ben", "--email", "ben@example.com", "--admin"]);

      const list = await json<Json[]>("users", "list");
      expect(list.map(({ id, name, is_admin }) => [id, name, is_admin])).to.deep.equal([
        [1, "Ada", false],
        [2, "Ben", true],
      ]);
      const lines = (await run(["users", "list"])).stdout.split("\n");
      expect(lines[1]).to.match(/id.*name.*email.*is_admin.*disabled_at.*created_at/);
      expect(lines[3]).to.match(/1.*Ada.*ada@example\.com.*no.*-/);
      expect(lines.join("")).not.to.contain("\u001b");
    });

    it("disables a user, whose tokens are then refused, and enables again", async () => {
      const { token } = await json(...ada);

      const disabled = await run(["users", "disable", "1"]);
      expect(disabled.stdout).to.equal(
        "The user 1 (Ada, ada@example.com) is disabled: its tokens answer 401, and its webhooks wait.\n",
      );
      expect(await callerOfToken(scene.tokens, String(token))).to.equal(undefined);

      expect(await json("users", "enable", "1")).to.include({ id: 1, disabled_at: null });
      expect(await callerOfToken(scene.tokens, String(token))).to.have.property("id", 1);
    });

    it("keeps the first date when a user is disabled twice", async () => {
      await run(ada);

      const first = await json("users", "disable", "1");
      const second = await json("users", "disable", "1");

      expect(first["disabled_at"]).to.match(/^\d{4}-.*\+00:00$/);
      expect(second["disabled_at"]).to.equal(first["disabled_at"]);
    });

    for (const verb of ["disable", "enable"]) {
      it(`fails to ${verb} a missing user`, async () => {
        const { error } = await run(["users", verb, "7"]);

        expect(error)
          .to.be.instanceOf(OperatorError)
          .with.property("message", "There is no user with the id 7. See: svc-admin users list");
      });

      it(`is wrong usage to ${verb} an invalid id, or no id`, async () => {
        expect((await run(["users", verb, "ada"])).error).to.be.instanceOf(CommanderError);
        expect((await run(["users", verb])).error).to.be.instanceOf(CommanderError);
      });
    }
  });

  describe("tokens", () => {
    beforeEach(() => run(ada));

    it("creates a token for a user, under a name and with an end", async () => {
      const created = await json("tokens", "create", "--user", "1", "--name", "ci", "--expires-in", "30m");

      expect(created).to.include({ id: 2, user_id: 1, name: "ci" });
      expect(Date.parse(String(created["expires_at"]))).to.be.within(
        Date.now() + 1_740_000,
        Date.now() + 1_800_000,
      );
      expect(await callerOfToken(scene.tokens, String(created["token"]))).to.have.property("id", 1);
    });

    it("gives a token the given scopes, and * without any", async () => {
      await scene.core.sql(
        `INSERT INTO svc.installed_resources (name, "table", is_managed, hash) VALUES ('notes', 'notes', true, 'x')
         ON CONFLICT DO NOTHING`,
      );
      const create = ["tokens", "create", "--user", "1"];

      expect(await json(...create, "--scope", "notes:read", "--scope", "webhooks")).to.deep.include({
        scopes: ["notes:read", "webhooks"],
      });
      expect(await json(...create)).to.deep.include({ scopes: ["*"] });
      const list = await json<Json[]>("tokens", "list", "--user", "1");
      expect(list.map(({ scopes }) => scopes)).to.deep.equal([["*"], ["notes:read", "webhooks"], ["*"]]);
    });

    it("refuses a scope of a missing resource, and an invalid one", async () => {
      const { error } = await run(["tokens", "create", "--user", "1", "--scope", "note:read"]);
      const wrong = await run(["tokens", "create", "--user", "1", "--scope", "reed"]);

      expect(error)
        .to.be.instanceOf(OperatorError)
        .with.property("message", "There is no resource note; did you mean notes?");
      expect(wrong.error).to.be.instanceOf(CommanderError);
      expect(wrong.stderr).to.contain("A scope is one of *, read, write, webhooks, admin, <resource>:read");
    });

    it("names a token default, without an end, by default", async () => {
      expect(await json("tokens", "create", "--user", "1")).to.include({ name: "default", expires_at: null });
    });

    it("warns only for a disabled user that the token does not work yet", async () => {
      const warning = "The user 1 is disabled: the token answers 401 until svc-admin users enable 1\n";
      expect((await run(["tokens", "create", "--user", "1"])).stderr).not.to.contain(warning);
      await run(["users", "disable", "1"]);

      const { stderr, stdout, error } = await run(["tokens", "create", "--user", "1", "--json"]);

      expect(error).to.equal(undefined);
      expect(JSON.parse(stdout)).to.include({ user_id: 1 });
      expect(stderr).to.contain(warning);
    });

    it("lists a user's tokens with their use, newest first", async () => {
      const { token } = await json("tokens", "create", "--user", "1", "--name", "ci");
      await callerOfToken(scene.tokens, String(token));
      await scene.tokens.close();

      const list = await json<Json[]>("tokens", "list", "--user", "1");

      expect(list.map(({ id, name }) => [id, name])).to.deep.equal([
        [2, "ci"],
        [1, "default"],
      ]);
      expect(list[0]).to.have.all.keys(
        "id",
        "user_id",
        "name",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
      );
      expect(list[0]?.["last_used_at"]).to.match(/\+00:00$/);
      expect(list[1]?.["last_used_at"]).to.equal(null);
    });

    it("lists the tokens of all users", async () => {
      await json(
        "create-user",
        "--name",
        "Bob",
        "--email",
        "bob@example.com",
        "--scope",
        "read",
        "--scope",
        "webhooks",
      );

      const list = await json<Json[]>("tokens", "list");

      expect(list.map(({ user_id: user, scopes }) => [user, scopes])).to.deep.include([
        2,
        ["read", "webhooks"],
      ]);
      expect(new Set(list.map(({ user_id: user }) => user))).to.deep.equal(new Set([1, 2]));
    });

    it("links a user to the issuer's JWTs, once, and only with an issuer", async () => {
      const args = ["create-user", "--name", "Eve", "--no-token", "--subject", "eve|1", "--email"];
      const without = await run([...args, "eve@example.com"]);
      const issuer = "https://login.example.com";
      scene.issuer = issuer;
      const made = await run([...args, "eve@example.com"]);
      const again = await run([...args, "eve2@example.com"]);

      expect(String(without.error)).to.contain("--subject needs the setting auth.jwt.issuer");
      expect(made.error).to.equal(undefined);
      expect(String(again.error)).to.contain("There is already a user with the subject eve|1.");
      expect(await scene.core.sql("SELECT issuer, subject FROM svc.users WHERE name = 'Eve'")).to.deep.equal([
        { issuer, subject: "eve|1" },
      ]);
    });

    it("revokes a token", async () => {
      const { token } = await json("tokens", "create", "--user", "1", "--name", "ci");

      expect((await run(["tokens", "revoke", "2"])).stdout).to.equal("The token 2 (ci) is revoked.\n");
      expect(await callerOfToken(scene.tokens, String(token))).to.equal(undefined);
      expect(await json("tokens", "revoke", "2")).to.include({ id: 2, name: "ci" });
    });

    for (const [args, message] of [
      [["tokens", "create", "--user", "7"], "There is no user with the id 7. See: svc-admin users list"],
      [["tokens", "list", "--user", "7"], "There is no user with the id 7. See: svc-admin users list"],
      [["tokens", "revoke", "7"], "There is no token with the id 7. See: svc-admin tokens list"],
    ] as const) {
      it(`fails with ${args.join(" ")} when there is none`, async () => {
        expect((await run(args)).error)
          .to.be.instanceOf(OperatorError)
          .with.property("message", message);
      });
    }

    for (const args of [
      ["tokens"],
      ["tokens", "create"],
      ["tokens", "revoke"],
      ["tokens", "list", "--user", "x"],
    ]) {
      it(`is wrong usage: ${args.join(" ")}`, async () => {
        expect((await run(args)).error).to.be.instanceOf(CommanderError);
      });
    }
  });
});
