import { expect } from "chai";
import { deliveryBody, withDeliveryUuid } from "../../src/deliveries/body.ts";

const parts = {
  event: "on_update",
  resource: "orders",
  eventUuid: "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0001",
  deliveryUuid: "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0002",
  data: { id: 7, note: "Zoë ☃" },
  timestamp: "2026-03-28T14:30:00.123456Z",
} as const;

describe("deliveryBody", () => {
  it("gives the JSON of the specification, in its order, as UTF-8", () => {
    expect(deliveryBody(parts).toString("utf8")).to.equal(
      '{"event":"on_update","resource":"orders",' +
        '"event_id":"0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0001","delivery_id":"0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0002",' +
        '"data":{"id":7,"note":"Zoë ☃"},"timestamp":"2026-03-28T14:30:00.123456Z"}',
    );
  });
});

describe("withDeliveryUuid", () => {
  const another = "0b8f7a52-6f0e-4c43-9f0e-2f7f4a5f0003";

  it("changes the delivery_id and no other byte", () => {
    const data = {
      10: "integer-like keys come first",
      text: '\u2028 \ud800 \\ " </script>',
      numbers: [1e21, 1e-7, -0, 0.1, Number.MAX_SAFE_INTEGER, 2 ** 70],
      delivery_id: parts.deliveryUuid,
      nested: JSON.parse('{"__proto__":{"a":1},"b":null,"2":[],"1":{}}') as unknown,
    };
    const body = deliveryBody({ ...parts, data });

    const again = withDeliveryUuid(body, another);

    expect(again.toString()).to.equal(deliveryBody({ ...parts, data, deliveryUuid: another }).toString());
    expect(again.length).to.equal(body.length);
  });

  it("leaves the body that it is given alone", () => {
    const body = deliveryBody(parts);

    withDeliveryUuid(body, another);

    expect(body.equals(deliveryBody(parts))).to.equal(true);
  });
});
