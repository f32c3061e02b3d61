import { setTimeout } from "node:timers/promises";
import type { Channel, ConsumeMessage } from "amqplib";
import type { Log } from "../telemetry/log.ts";
import { createAcknowledgements, type Acknowledgements } from "./acknowledgements.ts";
import type { ConsumeOptions, Consumption, IncomingMessage } from "./broker.ts";
import { messageOf } from "../kit/errors.ts";
import { handOut } from "./hand-out.ts";
import type { Link } from "./link.ts";

/** Start of RabbitMQ's error for a queue that does not exist. */
const noQueue = "NOT_FOUND - no queue '";
/** Looks for a queue whose consumer was cancelled: half a second in all. */
const deletionLooks = 6;
const deletionLookMs = 100;

/**
 * Returns whether an error of RabbitMQ means a missing queue. The same code may mean a missing
 * exchange.
 */
export function isMissingQueue(refusal: unknown): boolean {
  return messageOf(refusal).includes(noQueue);
}

interface ActiveConsumer {
  readonly channel: Channel;
  readonly acknowledgements: Acknowledgements;
  readonly consumerTag: string;
}

export interface RabbitMqConsumption extends Consumption {
  /**
   * Stops, and closes the channel after the acknowledgements. RabbitMQ hands out unsettled messages
   * again.
   */
  close(): Promise<void>;
}

/**
 * Consumes on its own channel. Subscribes again after the loss of the channel, the queue or the
 * connection.
 */
export function startConsumption({
  link,
  options,
  log,
  onEnd,
}: {
  readonly link: Link;
  readonly options: ConsumeOptions;
  readonly log: Log;
  /** Called when the consumption is stopped and every message is settled. */
  readonly onEnd: () => void;
}): RabbitMqConsumption {
  let isStopped = false;
  let active: ActiveConsumer | undefined;
  /** Messages of the current channel that are handed out and not settled. */
  let inFlight = 0;
  const end = (): Promise<void> => {
    active?.acknowledgements.flush();
    onEnd();
    return stopChannel();
  };

  const stopChannel = link.keepChannel({
    open: (connection) => connection.createChannel(),
    async setUp(channel) {
      if (isStopped) throw new Error("stopped");
      inFlight = 0;
      let isAlive = true;
      const most = Math.max(1, Math.floor(options.prefetch / 10));
      const acknowledgements = createAcknowledgements(channel, most);
      channel.once("close", () => {
        isAlive = false;
        active = undefined;
        if (isStopped) void end();
      });

      const settle = (act: () => void): void => {
        // A delivery tag is only valid on its own channel: RabbitMQ requeued the message when the
        // channel closed.
        if (!isAlive) return;
        inFlight -= 1;
        act();
        if (isStopped && inFlight === 0) void end();
      };

      await channel.prefetch(options.prefetch);
      const { consumerTag } = await channel.consume(options.queue, (delivery) => {
        if (delivery === null) {
          // Reports first: once the channel is closed, its successor declares the missing queue.
          void reportCancelled(link, options.queue, log).then(() => channel.close().catch(() => undefined));
        } else if (isStopped) {
          channel.nack(delivery, false, true);
        } else {
          inFlight += 1;
          acknowledgements.open(delivery);
          handOut(toIncoming(delivery, acknowledgements, settle), options, log);
        }
      });
      active = { channel, acknowledgements, consumerTag };
    },
  });

  return {
    async stop() {
      isStopped = true;
      if (active === undefined) return end();
      const { channel, consumerTag } = active;
      await channel.cancel(consumerTag).catch(() => undefined);
      // Otherwise the last message in flight closes the channel.
      if (inFlight === 0) await end();
    },
    async close() {
      isStopped = true;
      await end();
    },
  };
}

/**
 * Logs why RabbitMQ has cancelled a consumer. Never rejects. RabbitMQ 4 notifies the consumer of a
 * deleted queue some time before the queue is gone.
 */
async function reportCancelled(link: Link, queue: string, log: Log): Promise<void> {
  let isGone = false;
  for (let look = 0; !isGone && look < deletionLooks; look += 1) {
    if (look > 0) await setTimeout(deletionLookMs, undefined, { ref: false });
    isGone = await link.ask((channel) => channel.checkQueue(queue)).then(() => false, isMissingQueue);
  }
  log.warn(
    { queue },
    isGone
      ? "a queue was deleted in RabbitMQ, with its messages; declaring it again"
      : "RabbitMQ cancelled a consumer",
  );
}

function toIncoming(
  delivery: ConsumeMessage,
  acknowledgements: Acknowledgements,
  settle: (act: () => void) => void,
): IncomingMessage {
  let isSettled = false;
  const once = (act: () => void): void => {
    if (isSettled) return;
    isSettled = true;
    settle(act);
  };
  const messageId: unknown = delivery.properties.messageId;
  return {
    messageId: typeof messageId === "string" ? messageId : "",
    routingKey: delivery.fields.routingKey,
    body: delivery.content,
    headers: delivery.properties.headers ?? {},
    ack: () => once(() => acknowledgements.ack(delivery)),
    requeue: () => once(() => acknowledgements.requeue(delivery)),
  };
}
