import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signedHeaders } from "../../src/deliveries/attempt/sign.ts";
import { createNote, notesYaml, subscribe } from "../support/notes.ts";
import { startReceiver, type ReceivedRequest, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService } from "../support/service.ts";
import { ensureLanguages, folder, languages, verdicts, type Case } from "./verifiers.ts";

/** Returns a request that the service's own code signed, `secondsAgo` before now. */
function signedAt(secret: string, body: Buffer, secondsAgo: number): Case {
  const sentAt = new Date(Date.now() - secondsAgo * 1000);
  const signing = { secrets: [secret], headers: {} };
  const headers = signedHeaders({ signing, body: [body], eventUuid: "e", uuid: "d", sentAt });
  return { secret, headers, body: body.toString("base64") };
}

describe("the code that verifies a delivery", function () {
  this.timeout(300_000);
  let service: TestService;
  let receiver: TestReceiver;
  /** Each with the verdict that a receiver must reach. */
  const cases: (readonly [name: string, tried: Case, isGenuine: boolean])[] = [];

  before(async () => {
    [service, receiver] = await Promise.all([
      startService({ mode: "servers", resources: { "notes.yaml": notesYaml } }),
      startReceiver(),
      ensureLanguages(),
    ]);
    const ada = await service.createUser();
    const { id, secret } = await subscribe(ada, receiver);
    await createNote(ada, 'Zoë ☃ \\ "quoted"');
    await receiver.waitFor(1);
    const rotated = await ada.request("POST", `/webhooks/${id}/rotate-secret`, { grace: 600 });
    await createNote(ada, "signed by two");
    const [first, second] = (await receiver.waitFor(2)) as [ReceivedRequest, ReceivedRequest];

    const taken = (request: ReceivedRequest, changes: Partial<Case> = {}): Case => ({
      secret,
      headers: request.headers as Record<string, string>,
      body: request.rawBody.toString("base64"),
      ...changes,
    });
    const without = (name: string): Case => {
      const { [name]: _, ...headers } = taken(first).headers;
      return taken(first, { headers });
    };
    const withHeader = (name: string, value: string): Case =>
      taken(first, { headers: { ...taken(first).headers, [name]: value } });
    const changed = Buffer.from(first.rawBody.toString().replace("Zoë", "Zoe"));
    const now = String(Math.floor(Date.now() / 1000) + 1);
    const signature = taken(first).headers["webhook-signature"] ?? "";

    cases.push(
      ["a delivery, as it came", taken(first), true],
      ["with one byte of the body changed", taken(first, { body: changed.toString("base64") }), false],
      [
        "with a blank behind the body",
        taken(first, { body: Buffer.concat([first.rawBody, Buffer.from(" ")]).toString("base64") }),
        false,
      ],
      ["with another secret", taken(first, { secret: `${secret}x` }), false],
      ["during a rotation, with the old secret", taken(second), true],
      ["during a rotation, with the new secret", taken(second, { secret: rotated.body.secret }), true],
      ["before the rotation, with the new secret", taken(first, { secret: rotated.body.secret }), false],
      ["signed 120 s ago", signedAt(secret, first.rawBody, 120), true],
      ["signed 310 s ago", signedAt(secret, first.rawBody, 310), false],
      ["signed 600 s ahead", signedAt(secret, first.rawBody, -600), false],
      ["with another time than the signed one", withHeader("webhook-timestamp", now), false],
      ["with another id than the signed one", withHeader("webhook-id", "other"), false],
      ...["", "soon", "1e9", " 1", `${now}\n`, "9".repeat(400), "-1"].map(
        (time) =>
          [`with the time ${JSON.stringify(time)}`, withHeader("webhook-timestamp", time), false] as const,
      ),
      [
        "with its signature between others",
        withHeader("webhook-signature", `v1,AAAA ${signature} v2,x`),
        true,
      ],
      ...[
        "",
        " ",
        "v1",
        "v1,",
        signature.slice(0, -1),
        `${signature}=`,
        "v1,☃",
        signature.replace("v1,", "v2,"),
        signature.replace("v1,", ""),
      ].map(
        (other) =>
          [
            `with the signature ${JSON.stringify(other)}`,
            withHeader("webhook-signature", other),
            false,
          ] as const,
      ),
      ["without an id", without("webhook-id"), false],
      ["without a time", without("webhook-timestamp"), false],
      ["without a signature", without("webhook-signature"), false],
    );
  });
  after(async () => {
    await receiver?.close();
    await service?.stop();
  });

  for (const ending of Object.keys(languages)) {
    it(`in verify.${ending} accepts genuine deliveries only`, async () => {
      const found = await verdicts(
        ending,
        cases.map(([, tried]) => tried),
      );

      expect(cases.map(([name], index) => [name, found[index]])).to.deep.equal(
        cases.map(([name, , isGenuine]) => [name, isGenuine]),
      );
    });

    it(`in verify.${ending} refuses everything while its secret is missing`, async () => {
      const forged = signedAt("", Buffer.from("{}"), 0);

      const answer = await verdicts(ending, [forged]).catch((error: unknown) => String(error));
      if (ending === "go") expect(answer).to.deep.equal([false]);
      else expect(answer).to.include("The secret of the webhook is missing.");
    });
  }

  it("is that of docs/webhooks.md, to the letter", () => {
    const page = readFileSync("docs/webhooks.md", "utf8");
    const shown = [
      ...page.matchAll(/<!-- src\/console\/verification\/verify\.(\w+) -->\n+```\w+\n([^]*?)```\n/g),
    ];

    expect(shown.map(([, ending]) => ending)).to.deep.equal(Object.keys(languages));
    for (const [, ending, code] of shown)
      expect(code).to.equal(readFileSync(join(folder, `verify.${ending}`), "utf8"));
  });
});
