/** A message to publish, for either broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  /**
   * At most 255 bytes. Two messages with the same exchange, key and id count as one message that
   * was published twice.
   */
  readonly messageId: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `confirmed` only when the broker has taken the message into at least one queue. */
export type PublishOutcome =
  | { readonly kind: "confirmed" }
  | { readonly kind: "unconfirmed"; readonly reason: string };

/** A message that the broker handed out. */
export interface IncomingMessage {
  readonly messageId: string;
  readonly routingKey: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, unknown>>;
  /**
   * Settles the message. Has no effect after its connection is lost: the broker hands the message
   * out again.
   */
  ack(): void;
  /** Returns the message to its queue, which hands it out again. */
  requeue(): void;
}

export interface ConsumeOptions {
  readonly queue: string;
  /** Most messages that are handed out and not settled. */
  readonly prefetch: number;
  readonly onMessage: (message: IncomingMessage) => void;
}

export interface Consumption {
  /** Stops the hand-out of messages. Those in flight can still be settled. */
  stop(): Promise<void>;
}

/**
 * The hand-off between relay, fan-out and delivery. topology.ts declares the exchanges and queues.
 */
export interface Broker {
  /**
   * Publishes persistent, mandatory messages, and waits for their confirms in parallel. Returns one
   * outcome per message, in order. Never rejects: a lost connection, a return, a nack and a timeout
   * are `unconfirmed`.
   */
  publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]>;
  /**
   * Consumes until stopped, across the loss of the connection or the queue. Does not wait for a
   * connection.
   */
  consume(options: ConsumeOptions): Promise<Consumption>;
  /**
   * Returns the number of messages ready in the queue, without those handed out. Rejects without a
   * connection.
   */
  depth(queue: string): Promise<number>;
  isConnected(): boolean;
  /**
   * Checks now, and returns why published messages may reach no queue: no connection, an alarm, or
   * a missing part of the topology. Undefined without a fault. Bindings that were removed are then
   * restored.
   */
  fault(): Promise<string | undefined>;
  close(): Promise<void>;
}
