import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { signedHeaders } from "../../../src/deliveries/attempt/sign.ts";
import { mintSecret, standardSecret } from "../../../src/subscriptions/secret.ts";

const body = Buffer.from('{"event":"on_create","data":{"name":"Zoë ☃"}}');
const post = {
  signing: { secrets: ["sec_test"], headers: {} },
  body: [body],
  eventUuid: "e-1",
  uuid: "d-1",
  sentAt: new Date("2026-03-28T14:30:00.999Z"),
};

describe("signedHeaders", () => {
  it("gives the headers of the specification, and those of Standard Webhooks", () => {
    const headers = signedHeaders(post);

    expect(headers).to.deep.equal({
      "Content-Type": "application/json",
      // printf '%s' "$BODY" | openssl dgst -sha256 -hmac sec_test
      "X-Service-Signature": "sha256=2335455b381724a7d0a496b704fbb6b46784454c044f84a4d4048cf9841c2f92",
      "X-Service-Event": "e-1",
      "X-Service-Delivery": "d-1",
      "User-Agent": "Service-Webhook/1.0",
      "webhook-id": "d-1",
      "webhook-timestamp": "1774708200",
      // printf '%s' "d-1.1774708200.$BODY" | openssl dgst -sha256 -hmac sec_test -binary | base64
      "webhook-signature": "v1,jFw5En6z/7LlNsGlXfgbvbx5udO1vlfVqCQECedqYc0=",
    });
  });

  it("signs so that an independent receiver library verifies it", async () => {
    const signature = signedHeaders(post)["X-Service-Signature"] ?? "";

    expect(await verify("sec_test", body.toString(), signature)).to.equal(true);
    expect(await verify("sec_other", body.toString(), signature)).to.equal(false);
    expect(await verify("sec_test", `${body.toString()} `, signature)).to.equal(false);
  });

  for (const [library, Webhook] of [
    ["standardwebhooks", StandardWebhook],
    ["svix", SvixWebhook],
  ] as const) {
    it(`signs so that ${library} verifies it, with the new secret and with the one before`, () => {
      const [newest, previous, other] = [mintSecret(), "a secret of the receiver's own", mintSecret()];
      const signing = { secrets: [newest, previous], headers: {} };
      const headers = signedHeaders({ ...post, signing, sentAt: new Date() });
      const verifyWith = (secret: string, payload = body.toString()): unknown =>
        new Webhook(standardSecret(secret)).verify(payload, headers);

      for (const secret of signing.secrets) expect(() => verifyWith(secret)).not.to.throw();
      expect(() => verifyWith(other)).to.throw();
      expect(() => verifyWith(newest, `${body.toString()} `)).to.throw();
      const late = signedHeaders({ ...post, signing, sentAt: new Date(Date.now() - 3_600_000) });
      expect(() => new Webhook(standardSecret(newest)).verify(body.toString(), late)).to.throw();
    });
  }

  it("signs with the newest secret in its own header, and with the one before in another", async () => {
    const headers = signedHeaders({ ...post, signing: { secrets: ["new", "old", "older"], headers: {} } });
    const verifies = (secret: string, name: string): Promise<boolean> =>
      verify(secret, body.toString(), headers[name] ?? "");

    expect(await verifies("new", "X-Service-Signature")).to.equal(true);
    expect(await verifies("old", "X-Service-Signature-Previous")).to.equal(true);
    expect(headers["webhook-signature"]?.split(" ")).to.have.length(3);
  });

  it("carries the receiver's own headers", () => {
    const signing = { secrets: ["sec_test"], headers: { Authorization: "Bearer x" } };

    expect(signedHeaders({ ...post, signing })).to.deep.equal({
      Authorization: "Bearer x",
      ...signedHeaders(post),
    });
  });

  it("signs any bytes, text or not", () => {
    const [one, other] = [Uint8Array.of(0xff, 0xfe), Uint8Array.of(0xff, 0xfd)].map(
      (bytes) => signedHeaders({ ...post, body: [bytes] })["X-Service-Signature"],
    );

    expect(one).to.not.equal(other);
  });

  it("signs parts like their whole", () => {
    const parts = [body.subarray(0, 7), Buffer.alloc(0), body.subarray(7, 8), body.subarray(8)];

    expect(signedHeaders({ ...post, body: parts })).to.deep.equal(signedHeaders(post));
    expect(signedHeaders({ ...post, body: parts.toReversed() })).to.not.deep.equal(signedHeaders(post));
  });
});
