/**
 * The dispatcher of the sender that is written by hand, in a separate process. Each message becomes
 * a row and a signed POST. It makes one attempt and has no limits.
 */
import { createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import { connect, type ConsumeMessage } from "amqplib";
import { Pool } from "pg";
import { answerQuestions } from "../peer.ts";
import { type ByHandQuestion, flushMs, messages, ofQuorum } from "./sender-queue.ts";

const insert = {
  name: "insert",
  text: "INSERT INTO by_hand_deliveries (id) VALUES ($1::uuid) ON CONFLICT DO NOTHING",
};
const record = {
  name: "record",
  text: "UPDATE by_hand_deliveries SET delivered_at = now() WHERE id = ANY($1::uuid[])",
};

interface Message {
  readonly id: string;
  readonly data: { readonly created_at: string };
}

answerQuestions(async ({ databaseUrl, amqpUrl, poolSize, receiverPort }: ByHandQuestion) => {
  const pool = new Pool({ connectionString: databaseUrl, max: poolSize });
  const channel = await (await connect(amqpUrl)).createChannel();
  await channel.assertQueue(messages, ofQuorum);
  await channel.prefetch(200);
  const agent = new Agent({ keepAlive: true });
  let delivered: string[] = [];
  setInterval(() => {
    if (delivered.length > 0) void pool.query({ ...record, values: [delivered] });
    delivered = [];
  }, flushMs);

  const post = (id: string, body: string): void => {
    const digest = createHmac("sha256", "secret").update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-service-delivery": id,
      "x-service-signature": `sha256=${digest}`,
    };
    request({ host: "127.0.0.1", port: receiverPort, method: "POST", agent, headers }, (response) => {
      response.resume().on("end", () => delivered.push(id));
    }).end(body);
  };
  const handle = async (message: ConsumeMessage): Promise<void> => {
    const { id, data } = JSON.parse(message.content.toString()) as Message;
    await pool.query({ ...insert, values: [id] });
    channel.ack(message);
    post(id, JSON.stringify({ event: "on_create", id, data, timestamp: data.created_at }));
  };
  await channel.consume(messages, (message) => {
    if (message !== null) void handle(message);
  });
  return {};
});
