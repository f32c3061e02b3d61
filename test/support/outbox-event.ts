import type { OutboxEvent } from "../../src/events/outbox.ts";

/** Returns an event of the outbox, whose record has the same id. */
export function outboxEvent(id: string, given: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id,
    uuid: id,
    resource: "notes",
    trigger: "on_create",
    recordId: id,
    ownerId: "1",
    snapshot: {},
    timestamp: "2026-01-01T00:00:00.000000Z",
    traceparent: null,
    bytes: 10,
    transaction: "9",
    ...given,
  };
}
