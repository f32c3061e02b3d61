import { serviceEvents, type EventKind } from "../events/event.ts";
import { triggers } from "../mapping/definition.ts";

export const deliveryStatuses = ["pending", "retrying", "held", "delivered", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The events that a delivery can report. */
export const deliveredEvents: readonly EventKind[] = [...triggers, ...serviceEvents];

/** `last_error` of a delivery that ended since the payload of its event was erased. */
export const erasedReason = "The record was erased.";

/** Why an attempt failed; `http` is an answer outside 2xx. */
export type AttemptError =
  | "dns"
  | "refused"
  | "timeout"
  | "tls"
  | "blocked"
  | "reset"
  | "unreachable"
  | "protocol"
  | "http";

/** What made an attempt: its schedule, a person or a test delivery. */
export type AttemptTrigger = "scheduled" | "manual" | "replay" | "test";

/** Where a POST went, and how long each part took. Undefined for a part that it did not reach. */
export interface AttemptTimings {
  /** IP address of the receiver. */
  readonly address?: string | undefined;
  /** Not on a kept connection, like the next two, nor for an address in the URL. */
  readonly dnsMs?: number | undefined;
  readonly connectMs?: number | undefined;
  readonly tlsMs?: number | undefined;
  /** From the start of the attempt to the head of the answer. */
  readonly firstByteMs?: number | undefined;
}

/** Result of one POST: a value, never an exception. */
export interface AttemptResult extends AttemptTimings {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Undefined for 2xx. */
  readonly error?: AttemptError;
  /** One line for `last_error`, without secrets; undefined for 2xx. */
  readonly detail?: string;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string | readonly string[]>>;
  /** At most 16 KiB. */
  readonly responseBody?: Buffer;
  readonly isResponseTruncated: boolean;
  /** From `Retry-After`; undefined without a usable one. */
  readonly retryAfterSeconds?: number;
}

/** What follows an attempt. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed" };
