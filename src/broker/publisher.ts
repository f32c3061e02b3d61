import type { ConfirmChannel, Message } from "amqplib";
import { messageOf } from "../kit/errors.ts";
import type { OutgoingMessage, PublishOutcome } from "./broker.ts";
import type { Link } from "./link.ts";

/** Publishes to RabbitMQ. */
interface Publisher {
  publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]>;
  /** Returns why nothing can be published now; undefined when it can. */
  refusal(): string | undefined;
  /** Refuses further messages, waits for the confirms in flight, and closes the channel. */
  close(): Promise<void>;
}

interface OpenChannel {
  readonly channel: ConfirmChannel;
  /** Number of returned messages that are not confirmed yet, by `identityOf`. */
  readonly returned: Map<string, number>;
  /** Most bytes of a message that RabbitMQ accepts. */
  readonly largest: number;
}

/** The reason of an unconfirmed message that no queue takes. */
export const unroutable = "unroutable";

/** Error of RabbitMQ when it closes the channel of a message that exceeds its setting. */
const refusedSize = /message size \d+ is larger than configured max size (\d+)/;

const confirmed: PublishOutcome = { kind: "confirmed" };
const unconfirmed = (reason: string): PublishOutcome => ({ kind: "unconfirmed", reason });

/**
 * Publishes on one confirm channel of `link`.
 *
 * @param timeoutMs Time limit of a whole `publish`.
 * @param onReady Called each time publishing becomes possible.
 * @param onFailed Called with the reason when it remains impossible although RabbitMQ answers.
 */
export function createPublisher({
  link,
  timeoutMs,
  onReady,
  onFailed,
}: {
  readonly link: Link;
  readonly timeoutMs: number;
  readonly onReady: () => void;
  readonly onFailed: (reason: string) => void;
}): Publisher {
  let open: OpenChannel | undefined;
  let isClosed = false;
  /**
   * Most bytes of a message, once known: AMQP cannot query the limit, so RabbitMQ must first close
   * a channel for it.
   */
  let learned = Number.POSITIVE_INFINITY;
  const inFlight = new Set<Promise<unknown>>();

  const stopChannel = link.keepChannel({
    open: (connection) => connection.createConfirmChannel(),
    onFailed,
    async setUp(channel) {
      const fresh: OpenChannel = { channel, returned: new Map(), largest: learned };
      // After a close for another reason, RabbitMQ may have another limit.
      learned = Number.POSITIVE_INFINITY;
      channel.on("error", (error: Error) => {
        const [, most] = refusedSize.exec(error.message) ?? [];
        if (most !== undefined) learned = Number(most);
      });
      channel.on("return", ({ fields, properties }: Message) => {
        const { exchange, routingKey } = fields;
        const identity = identityOf({ exchange, routingKey, messageId: String(properties.messageId) });
        fresh.returned.set(identity, (fresh.returned.get(identity) ?? 0) + 1);
      });
      channel.once("close", () => {
        if (open === fresh) open = undefined;
      });
      open = fresh;
      onReady();
    },
  });

  /** Returns the channel to publish on, or the reason why there is none. */
  function usableChannel(): OpenChannel | string {
    if (isClosed) return "closed";
    const blocked = link.blockedBecause();
    if (blocked !== undefined) return `RabbitMQ takes no messages: ${blocked}`;
    return open ?? "not connected to RabbitMQ";
  }

  return {
    refusal() {
      const channel = usableChannel();
      return typeof channel === "string" ? channel : undefined;
    },
    async publish(messages) {
      if (messages.length === 0) return [];
      const channel = usableChannel();
      if (typeof channel === "string") return messages.map(() => unconfirmed(channel));
      const batch = publishBatch(channel, messages, timeoutMs);
      inFlight.add(batch);
      try {
        return await batch;
      } finally {
        inFlight.delete(batch);
      }
    },
    async close() {
      isClosed = true;
      await Promise.all(inFlight);
      await stopChannel();
    },
  };
}

function publishBatch(
  { channel, returned, largest }: OpenChannel,
  messages: readonly OutgoingMessage[],
  timeoutMs: number,
): Promise<readonly PublishOutcome[]> {
  return new Promise((resolve) => {
    const outcomes = messages.map(() => unconfirmed(`no confirm within ${timeoutMs} ms`));
    let left = messages.length;
    const timer = setTimeout(() => resolve(outcomes.slice()), timeoutMs);
    const settle = (index: number, outcome: PublishOutcome): void => {
      outcomes[index] = outcome;
      left -= 1;
      if (left > 0) return;
      clearTimeout(timer);
      resolve(outcomes);
    };
    for (const [index, message] of messages.entries()) {
      if (message.body.length > largest) {
        settle(index, unconfirmed(`larger than max_message_size of RabbitMQ, ${largest} bytes`));
        continue;
      }
      try {
        send(channel, message, (error) => {
          if (error !== null) settle(index, unconfirmed(error.message));
          // RabbitMQ returns a message that no queue takes, and then confirms it.
          else if (wasReturned(returned, message)) settle(index, unconfirmed(unroutable));
          else settle(index, confirmed);
        });
      } catch (error) {
        settle(index, unconfirmed(messageOf(error)));
      }
    }
  });
}

function send(
  channel: ConfirmChannel,
  { exchange, routingKey, messageId, body, headers }: OutgoingMessage,
  onSettled: (error: Error | null) => void,
): void {
  // Ignores the result of `publish`, which tells whether its buffer is full: the callers limit
  // their batches.
  channel.publish(
    exchange,
    routingKey,
    body,
    {
      persistent: true,
      mandatory: true,
      messageId,
      contentType: "application/json",
      timestamp: Math.floor(Date.now() / 1_000),
      headers,
    },
    onSettled,
  );
}

/**
 * Returns the identity of a message. Two messages with the same identity are one message, published
 * twice: if one is returned, either may count as lost.
 */
function identityOf({ exchange, routingKey, messageId }: Omit<OutgoingMessage, "body" | "headers">): string {
  return JSON.stringify([exchange, routingKey, messageId]);
}

function wasReturned(returned: Map<string, number>, message: OutgoingMessage): boolean {
  if (returned.size === 0) return false;
  const identity = identityOf(message);
  const count = returned.get(identity);
  if (count === undefined) return false;
  if (count === 1) returned.delete(identity);
  else returned.set(identity, count - 1);
  return true;
}
