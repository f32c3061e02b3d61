/** What both processes of the sender that is written by hand share. */
export interface ByHandQuestion {
  readonly databaseUrl: string;
  readonly amqpUrl: string;
  readonly poolSize: number;
  readonly receiverPort: number;
}

/** Name of the queue of its messages. */
export const messages = "by_hand";
export const ofQuorum = { durable: true, arguments: { "x-queue-type": "quorum" } };
/** Time between two writes of what was confirmed or delivered. */
export const flushMs = 50;

export const tables = `
  CREATE TABLE by_hand_notes (id serial PRIMARY KEY, title text NOT NULL, body text NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
  CREATE TABLE by_hand_events (id uuid PRIMARY KEY, data jsonb NOT NULL);
  CREATE TABLE by_hand_deliveries (id uuid PRIMARY KEY, delivered_at timestamptz)`;
