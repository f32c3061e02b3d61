import { expect } from "chai";
import { deliveryBody, sizeOf } from "../../../src/deliveries/attempt/body.ts";

const parts = {
  event: "on_update",
  resource: "orders",
  eventUuid: "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0001",
  uuid: "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0002",
  data: Buffer.from('{"id":7,"note":"Zoë ☃"}'),
  timestamp: "2026-03-28T14:30:00.123456Z",
} as const;

describe("deliveryBody", () => {
  it("gives the JSON of the specification, in its order, as UTF-8", () => {
    expect(Buffer.concat(deliveryBody(parts)).toString("utf8")).to.equal(
      '{"event":"on_update","resource":"orders",' +
        '"event_id":"0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0001","delivery_id":"0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0002",' +
        '"data":{"id":7,"note":"Zoë ☃"},"timestamp":"2026-03-28T14:30:00.123456Z"}',
    );
  });

  it("ends with the old row of an update", () => {
    const body = deliveryBody({ ...parts, previous: Buffer.from('{"id":7,"note":"Zoë"}') });
    const text = Buffer.concat(body).toString("utf8");

    expect(text).to.match(/"timestamp":"2026-03-28T14:30:00.123456Z","previous":{"id":7,"note":"Zoë"}}$/);
    expect(sizeOf(body)).to.equal(Buffer.byteLength(text));
  });

  it("shares the record among the deliveries of an event, byte for byte, whatever is in it", () => {
    const data = Buffer.from(
      '{"2":[],"1":1.50,"text":"\\u2028 \\ud800 \\\\ \\" </script>","delivery_id":"x","__proto__":{"a":1e999}}',
    );
    const [one, other] = ["0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0003", parts.uuid].map((uuid) =>
      deliveryBody({ ...parts, data, uuid }),
    );

    expect(one?.[1]).to.equal(data);
    expect(other?.[1]).to.equal(data);
    expect(Buffer.concat(one ?? []).toString()).to.equal(
      Buffer.concat(other ?? [])
        .toString()
        .replace(parts.uuid, "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0003"),
    );
  });
});
