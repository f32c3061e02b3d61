/** What a message carries through either broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  /** At most 255 bytes. Two messages of the same exchange, key and id count as the same one, published twice. */
  readonly messageId: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `confirmed` only when the broker has taken the message into at least one queue. */
export type PublishOutcome =
  | { readonly kind: "confirmed" }
  | { readonly kind: "unconfirmed"; readonly reason: string };

export interface IncomingMessage {
  readonly messageId: string;
  readonly routingKey: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly isRedelivered: boolean;
  /** Settles the message. Harmless when the connection it came on is gone: the broker hands it out again. */
  ack(): void;
  /** Gives the message back, to be handed out again. */
  requeue(): void;
}

export interface ConsumeOptions {
  readonly queue: string;
  /** Most messages handed out and not yet settled. */
  readonly prefetch: number;
  readonly onMessage: (message: IncomingMessage) => void;
}

export interface Consumption {
  /** Hands out no more messages. Those in hand can still be settled. */
  stop(): Promise<void>;
}

/** The hand-off between relay, fan-out and delivery: work that is ready now. The topology is declared in topology.ts. */
export interface Broker {
  /**
   * Publishes persistent, mandatory messages and waits for their confirms, pipelined.
   * One outcome per message, in order; never rejects: a lost connection, a return, a nack and a deadline are `unconfirmed`.
   */
  publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]>;
  /** Begins to consume, and goes on until stopped, across lost connections, the loss of the queue included. Does not wait for a connection. */
  consume(options: ConsumeOptions): Promise<Consumption>;
  /** Messages ready in the queue (not those handed out). Rejects while there is no connection. */
  depth(queue: string): Promise<number>;
  isConnected(): boolean;
  /** Why what is published may reach no queue: no connection, or a part of the topology is missing. Undefined when all is well. */
  fault(): string | undefined;
  close(): Promise<void>;
}
