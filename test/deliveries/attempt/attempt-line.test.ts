import { expect } from "chai";
import { attemptLine } from "../../../src/deliveries/attempt/attempt-line.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import type { DeliveryInFlight } from "../../../src/deliveries/attempt/delivery-in-flight.ts";

const delivery: DeliveryInFlight = {
  id: "41",
  uuid: "0f8fad5b-d9cb-469f-a165-70867728950e",
  eventId: "5",
  eventUuid: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
  event: "on_create",
  resource: "notes",
  timestamp: "2026-03-28T14:30:00.123456Z",
  attempt: 1,
  maxAttempts: 4,
  isPaced: false,
  trigger: "scheduled",
  traceparent: null,
  subscriptionId: 3,
  subscription: {
    url: "https://hooks.example.com:8443/canary?key=canary",
    signing: {
      encryptedSecret: Buffer.from("canary"),
      encryptedPrevious: Buffer.from("canary"),
      encryptedHeaders: Buffer.from("canary"),
    },
    rateLimit: null,
    user: { id: 7, name: "canary", email: "canary@example.com", isAdmin: false, claims: {} },
  },
  happenedAtMs: 0,
  payload: { data: Buffer.from("canary"), previous: Buffer.from("canary") },
  hasPrevious: true,
  flight: { id: "1", unwritten: 1, beganAtMs: 0 },
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
  const line = attemptLine(
    delivery,
    {
      id: delivery.id,
      uuid: delivery.uuid,
      status: "retrying",
      attemptsBefore: 1,
      delayMs: 4_999.6,
      lastError: "canary",
      result,
    },
    { isWritten: true, lagMs: 321.4, bytesOut: 6 },
  );

  it("names the delivery, its event, its receiver's host and the outcome", () => {
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

  it("contains nothing of the webhook's path and query, of its content and of the answer", () => {
    expect(JSON.stringify(line)).not.to.include("canary");
  });
});
