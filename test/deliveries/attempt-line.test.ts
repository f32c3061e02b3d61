import { expect } from "chai";
import { attemptLine } from "../../src/deliveries/attempt-line.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import type { LeasedDelivery } from "../../src/deliveries/store.ts";

const delivery: LeasedDelivery = {
  id: "41",
  uuid: "0f8fad5b-d9cb-469f-a165-70867728950e",
  eventUuid: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
  resource: "notes",
  attempt: 1,
  maxAttempts: 4,
  isManual: false,
  updatedAt: new Date(0),
  body: Buffer.from("canary"),
  url: "https://hooks.example.com:8443/canary?key=canary",
  encryptedSecret: Buffer.from("canary"),
  ownerId: "7",
  subscriptionId: 3,
  happenedAtMs: 0,
  traceparent: null,
  user: { id: 7, name: "canary", email: "canary@example.com", isAdmin: false },
  leasedUntil: new Date(0),
};

const result: AttemptResult = {
  startedAt: new Date(0),
  durationMs: 12,
  error: "http",
  detail: "canary",
  statusCode: 500,
  responseHeaders: { "x-debug": "canary" },
  responseBody: Buffer.from("canary"),
  isResponseTruncated: false,
};

describe("attemptLine", () => {
  const line = attemptLine({
    delivery,
    outcome: {
      lease: delivery,
      status: "retrying",
      attempt: 2,
      delayMs: 4_999.6,
      lastError: "canary",
      result,
    },
    result,
    isWritten: true,
    lagMs: 321.4,
  });

  it("names the delivery, its event, its receiver's host and what came of it", () => {
    expect(line).to.include({
      event: "delivery.attempt",
      delivery: delivery.uuid,
      eventUuid: delivery.eventUuid,
      subscriptionId: 3,
      userId: 7,
      resource: "notes",
      receiver: "hooks.example.com:8443",
      attempt: 2,
      maxAttempts: 4,
      status: "retrying",
      statusCode: 500,
      error: "http",
      bytesOut: 6,
      durationMs: 12,
      lagMs: 321,
      retryInMs: 5_000,
      isWritten: true,
    });
  });

  it("holds nothing of the webhook's path and query, of its content and of the answer", () => {
    expect(JSON.stringify(line)).not.to.include("canary");
  });
});
