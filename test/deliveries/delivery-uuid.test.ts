import { expect } from "chai";
import { deliveryUuidOf } from "../../src/deliveries/delivery-uuid.ts";

const event = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";

describe("deliveryUuidOf", () => {
  it("is a UUID of version 5, the same each time", () => {
    // Python: uuid.uuid5(uuid.UUID("a0eebc99-…"), "subscription 7")
    expect(deliveryUuidOf(event, 7)).to.equal("38623f4d-a37f-55b7-81fc-16c460edf4d5");
    expect(deliveryUuidOf(event, 7)).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it("differs for another event or subscription", () => {
    const uuids = [
      deliveryUuidOf(event, 7),
      deliveryUuidOf(event, 8),
      deliveryUuidOf(event.replace("a0", "a1"), 7),
    ];

    expect(new Set(uuids).size).to.equal(3);
  });
});
