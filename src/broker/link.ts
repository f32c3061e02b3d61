import { Socket } from "node:net";
import { connect, credentials, type Channel, type RecoveringChannelModel } from "amqplib";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { trustHint } from "../kit/untrusted.ts";
import { endsWithin, pause } from "../kit/worker.ts";
import { declareTopology } from "./topology.ts";

/** RabbitMQ closes a dead connection after two intervals. */
const heartbeatSeconds = 5;
const firstWaitMs = 200;
const longestWaitMs = 5_000;
/** Longest delay of a close by a broker that does not answer. */
const closeLimitMs = 3_000;

/** amqplib hides the server's reason here; the virtual host may still be starting. */
const refusedVirtualHost = /^Expected ConnectionOpenOk; got <ConnectionClose/;
/** Part of OpenSSL's message for an answer that is not TLS. */
const plainAnswer = "wrong version number";
/**
 * Errors of amqplib for an answer that is not AMQP, such as from a port for TLS or another program.
 */
const noAmqp = /^Socket closed abruptly|^Frame size \d+ exceeds|^Invalid frame/;

/** A connection to RabbitMQ that reconnects until it is closed. */
export interface Link {
  isUp(): boolean;
  /**
   * Returns why RabbitMQ takes no messages now (a memory or disk alarm). Undefined when it takes
   * messages.
   */
  blockedBecause(): string | undefined;
  /** Runs one request on its own channel. Rejects without a connection. */
  ask<T>(question: (channel: Channel) => Promise<T>): Promise<T>;
  /**
   * Opens a channel now and after each loss of the connection or the channel. Declares the topology
   * on it and passes it to `setUp`. A rejection of `setUp` counts as a loss.
   *
   * @param onFailed Called with the reason when a channel could not be set up.
   * @returns A function that closes the channel after sending all pending data, and opens no other.
   */
  keepChannel<C extends Channel>(options: {
    readonly open: (connection: RecoveringChannelModel) => Promise<C>;
    readonly setUp: (channel: C) => Promise<void>;
    readonly onFailed?: (reason: string) => void;
  }): () => Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts to connect, and returns without waiting.
 *
 * amqplib's recovery restores the connection, but not the channels. Its `setup` hook is not used:
 * after a failed `setup` it waits for the connection to close, which never happens with a broker
 * that hangs.
 *
 * @param name The name in RabbitMQ's list of connections.
 * @param onFailed Called with the reason of each connect that failed.
 */
export async function openLink({
  url,
  name,
  log,
  onFailed,
}: {
  readonly url: string;
  readonly name: string;
  readonly log: Log;
  readonly onFailed?: (reason: string) => void;
}): Promise<Link> {
  const address = new URL(url);
  if (!address.searchParams.has("heartbeat")) address.searchParams.set("heartbeat", String(heartbeatSeconds));
  const facts = { connection: name, host: address.host };

  const connection = await connect(address.href, {
    noDelay: true,
    timeout: 10_000,
    clientProperties: { connection_name: name },
    ...credentialsOf(address),
    recovery: { waitForConnect: false, initialDelay: firstWaitMs, maxDelay: longestWaitMs },
  });
  let isUp = false;
  let blockedBecause: string | undefined;
  connection.on("connect", (model: unknown) => {
    gatherWrites(model);
    isUp = true;
    log.info(facts, "connected to RabbitMQ");
  });
  connection.on("disconnect", (error: Error) => {
    isUp = false;
    blockedBecause = undefined;
    log.warn({ ...facts, reason: error.message }, "lost the connection to RabbitMQ");
  });
  connection.on("connect-failed", (error: Error) => {
    const reason = reasonOf(error);
    log.warn({ ...facts, reason }, "waiting for RabbitMQ");
    onFailed?.(reason);
  });
  connection.on("blocked", (reason: string) => {
    blockedBecause = reason;
    log.warn({ ...facts, reason }, "RabbitMQ takes no messages");
  });
  connection.on("unblocked", () => {
    blockedBecause = undefined;
    log.info(facts, "RabbitMQ takes messages again");
  });
  // `disconnect` follows with the same error; without a listener this event would end the process.
  connection.on("error", () => undefined);

  return {
    isUp: () => isUp,
    blockedBecause: () => blockedBecause,
    async ask(question) {
      if (!isUp) throw new Error("not connected to RabbitMQ");
      const channel = await connection.createChannel();
      channel.on("error", () => undefined);
      try {
        return await question(channel);
      } finally {
        await closeChannel(channel);
      }
    },
    keepChannel: ({ open, ...given }) => keepChannel({ ...given, open: () => open(connection), log, facts }),
    async close() {
      isUp = false;
      await endsWithin(closeLimitMs, connection.close());
    },
  };
}

/**
 * Returns the user and the password of a URL in UTF-8. amqplib decodes `%C3%A4` to two letters. It
 * still decodes bytes of other encodings.
 */
function credentialsOf({ username, password }: URL): {
  readonly credentials?: ReturnType<typeof credentials.plain>;
} {
  if (username === "" && password === "") return {};
  try {
    return { credentials: credentials.plain(decodeURIComponent(username), decodeURIComponent(password)) };
  } catch {
    return {};
  }
}

/**
 * Sends the writes of one turn of the event loop together. amqplib writes three frames per message,
 * each separately. Sent together, a delivery costs RabbitMQ 40 % less CPU. The types of amqplib
 * hide the socket; without a socket, nothing changes.
 */
function gatherWrites(model: unknown): void {
  const { connection } = (model ?? {}) as { readonly connection?: { readonly stream?: unknown } };
  const socket = connection?.stream;
  if (!(socket instanceof Socket)) return;
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]): boolean => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return write(...args);
  };
}

function keepChannel<C extends Channel>({
  open,
  setUp,
  onFailed,
  log,
  facts,
}: {
  readonly open: () => Promise<C>;
  readonly setUp: (channel: C) => Promise<void>;
  readonly onFailed?: (reason: string) => void;
  readonly log: Log;
  readonly facts: object;
}): () => Promise<void> {
  const stopping = new AbortController();
  let closeCurrent: (() => Promise<void>) | undefined;

  /** Resolves when the channel is closed. Rejects when it could not be set up. */
  async function useOneChannel(onSetUp: () => void): Promise<void> {
    const channel = await open();
    const closed = new Promise<void>((resolve) => channel.once("close", resolve));
    channel.on("error", (error: Error) =>
      log.warn({ ...facts, reason: error.message }, "RabbitMQ closed a channel"),
    );
    closeCurrent = () => closeChannel(channel);
    try {
      if (stopping.signal.aborted) return;
      await declareTopology(channel);
      await setUp(channel);
      onSetUp();
      await closed;
    } finally {
      await closeCurrent();
    }
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        await useOneChannel(() => {
          failures = 0;
        });
      } catch (error) {
        if (stopping.signal.aborted) return;
        const reason = messageOf(error);
        log.warn({ ...facts, reason }, "could not set up a channel of RabbitMQ");
        onFailed?.(reason);
      }
      await pause(waitMs(failures), stopping.signal);
      failures += 1;
    }
  }

  void run();
  return async () => {
    stopping.abort();
    await closeCurrent?.();
  };
}

/**
 * Closes a channel, and waits for the event "close". Without a connection, RabbitMQ sends no
 * close-ok, and amqplib's promise never settles.
 */
async function closeChannel(channel: Channel): Promise<void> {
  const closed = new Promise<void>((resolve) => channel.once("close", resolve));
  // The channel is closed already when RabbitMQ refused something.
  await endsWithin(closeLimitMs, Promise.race([channel.close().catch(() => undefined), closed]));
}

/**
 * Returns a wait that doubles with each failure up to a limit. It varies by half, so that many
 * processes do not reconnect at once.
 */
function waitMs(failures: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** failures) * (0.5 + Math.random() / 2);
}

/**
 * Returns the reason of a failed connect. With several addresses, the message of the joint error is
 * empty.
 */
function reasonOf(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(", ");
  if (error.message.includes(plainAnswer))
    return "the server answers without TLS: take the port that it has for TLS, usually 5671, or amqp:// in the URL";
  if (noAmqp.test(error.message))
    return `${error.message}; is this RabbitMQ's port for AMQP, usually 5672? By TLS it is usually 5671, and the URL begins with amqps://`;
  return refusedVirtualHost.test(error.message)
    ? "RabbitMQ does not open the virtual host of the URL: it does not exist, is still starting, or is not open to this user"
    : `${error.message}${trustHint(error, "NODE_EXTRA_CA_CERTS")}`;
}
