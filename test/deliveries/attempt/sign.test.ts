import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { signedHeaders } from "../../../src/deliveries/attempt/sign.ts";

const body = Buffer.from('{"event":"on_create","data":{"name":"Zoë ☃"}}');
const post = { secret: "sec_test", body: [body], eventUuid: "e-1", deliveryUuid: "d-1" };

describe("signedHeaders", () => {
  it("gives exactly the headers of the specification", () => {
    const headers = signedHeaders(post);

    expect(headers).to.deep.equal({
      "Content-Type": "application/json",
      // printf '%s' "$BODY" | openssl dgst -sha256 -hmac sec_test
      "X-Service-Signature": "sha256=2335455b381724a7d0a496b704fbb6b46784454c044f84a4d4048cf9841c2f92",
      "X-Service-Event": "e-1",
      "X-Service-Delivery": "d-1",
      "User-Agent": "Service-Webhook/1.0",
    });
  });

  it("signs so that an independent receiver library verifies it", async () => {
    const signature = signedHeaders(post)["X-Service-Signature"] ?? "";

    expect(await verify("sec_test", body.toString(), signature)).to.equal(true);
    expect(await verify("sec_other", body.toString(), signature)).to.equal(false);
    expect(await verify("sec_test", `${body.toString()} `, signature)).to.equal(false);
  });

  it("signs the bytes as they are, text or not", () => {
    const [one, other] = [Uint8Array.of(0xff, 0xfe), Uint8Array.of(0xff, 0xfd)].map(
      (bytes) => signedHeaders({ ...post, body: [bytes] })["X-Service-Signature"],
    );

    expect(one).to.not.equal(other);
  });

  it("signs parts as the whole that they make", () => {
    const parts = [body.subarray(0, 7), Buffer.alloc(0), body.subarray(7, 8), body.subarray(8)];

    expect(signedHeaders({ ...post, body: parts })).to.deep.equal(signedHeaders(post));
    expect(signedHeaders({ ...post, body: parts.toReversed() })).to.not.deep.equal(signedHeaders(post));
  });
});
