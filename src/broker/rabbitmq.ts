import { OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Broker, OutgoingMessage } from "./broker.ts";
import { startConsumption, type RabbitMqConsumption } from "./consumer.ts";
import { openLink } from "./link.ts";
import { createPublisher, unroutable } from "./publisher.ts";
import { startUpkeep } from "./upkeep.ts";
import { aborted } from "../kit/worker.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** RabbitMQ refuses the user or the password, which is a lasting fault. */
const lastingRefusal = /ACCESS.REFUSED/;

/**
 * Connects to RabbitMQ and declares the topology. Waits for a server that is not up, with a warning
 * for each failed try.
 *
 * Publishing and consuming have one connection each. During an alarm, RabbitMQ stops reading from
 * the publishing connection, but acknowledgements must still get through.
 *
 * @param publishTimeoutMs Time limit of one `publish`.
 * @param upkeepIntervalMs Interval of the checks for missing exchanges, queues and bindings.
 * @param onWait Gets the reason of each failed try, until the first connection is there.
 * @param signal Aborts the wait for the first connection, and rejects with its reason.
 * @throws OperatorError when `url` is not an AMQP URL, or RabbitMQ refuses the user or the
 *   password.
 */
export async function connectRabbitMq({
  url,
  log,
  publishTimeoutMs = 10_000,
  upkeepIntervalMs = 5_000,
  onWait,
  signal,
}: {
  readonly url: string;
  readonly log: Log;
  readonly publishTimeoutMs?: number;
  readonly upkeepIntervalMs?: number;
  readonly onWait?: (reason: string) => void;
  readonly signal?: AbortSignal;
}): Promise<Broker> {
  refuseOtherUrl(url);
  const started = new AbortController();
  const refused = new AbortController();
  const tell = (reason: string): void => (started.signal.aborted ? undefined : onWait?.(reason));
  const publishing = await openLink({
    url,
    name: "svc publisher",
    log,
    onFailed(reason) {
      if (lastingRefusal.test(reason)) refused.abort(refusedConnection(reason));
      else tell(reason);
    },
  });
  const consuming = await openLink({ url, name: "svc consumer", log });
  const consumptions = new Set<RabbitMqConsumption>();

  const publisher = createPublisher({
    link: publishing,
    timeoutMs: publishTimeoutMs,
    onReady: () => started.abort(),
    onFailed: tell,
  });
  // Does not use the publishing connection, which an alarm blocks.
  const upkeep = startUpkeep({ link: consuming, intervalMs: upkeepIntervalMs, log });
  const isConnected = (): boolean => publisher.refusal() === undefined && consuming.isUp();

  const broker: Broker = {
    async publish(messages) {
      const outcomes = await publisher.publish(messages);
      for (const [index, outcome] of outcomes.entries()) {
        const { exchange } = messages[index] as OutgoingMessage;
        if (outcome.kind === "confirmed") upkeep.noteConfirmed(exchange);
        else if (outcome.reason === unroutable) upkeep.noteUnroutable(exchange);
      }
      return outcomes;
    },
    async consume(options) {
      const onEnd = (): void => void consumptions.delete(consumption);
      const consumption = startConsumption({ link: consuming, options, log, onEnd });
      consumptions.add(consumption);
      return consumption;
    },
    depth: async (queue) => (await consuming.ask((channel) => channel.checkQueue(queue))).messageCount,
    isConnected,
    async fault() {
      const fault = isConnected() ? await upkeep.fault() : undefined;
      return isConnected() ? fault : (publisher.refusal() ?? "not connected to RabbitMQ");
    },
    async close() {
      const upkept = upkeep.stop();
      await Promise.all([publisher.close(), ...[...consumptions].map((consumption) => consumption.close())]);
      await Promise.all([publishing.close(), consuming.close()]);
      await upkept;
    },
  };

  const ends = [started.signal, refused.signal, ...(signal === undefined ? [] : [signal])];
  await aborted(AbortSignal.any(ends));
  if (!started.signal.aborted) {
    await broker.close();
    throw refused.signal.aborted ? refused.signal.reason : signal?.reason;
  }
  return broker;
}

/** @throws OperatorError for a URL of another kind, without the URL: it may contain a password. */
function refuseOtherUrl(url: string): void {
  if (!/^amqps?:$/.test(parseUrl(url)?.protocol ?? ""))
    throw new OperatorError(
      "The URL of RabbitMQ (broker.url, AMQP_URL) must begin with amqp:// or amqps://.",
    );
}

/** Returns the error of a start that RabbitMQ refuses permanently. */
function refusedConnection(reason: string): OperatorError {
  return new OperatorError(
    `RabbitMQ refuses the connection: ${reason}. ` +
      "Check the user, the password and the virtual host of broker.url (AMQP_URL).",
  );
}
