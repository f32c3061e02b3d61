/**
 * The API of the sender that is written by hand, in a separate process. A create inserts the row
 * and its event in one statement. The broker confirms its message.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "amqplib";
import { Pool } from "pg";
import { answerQuestions } from "../peer.ts";
import { type ByHandQuestion, flushMs, messages, ofQuorum } from "./sender-queue.ts";

const insert = {
  name: "insert",
  text: `WITH note AS (INSERT INTO by_hand_notes (title, body) VALUES ($1, $2)
      RETURNING id, title, body, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') AS created_at),
    event AS (INSERT INTO by_hand_events (id, data) SELECT $3::uuid, to_jsonb(note) FROM note)
    SELECT * FROM note`,
};
const remove = { name: "remove", text: "DELETE FROM by_hand_events WHERE id = ANY($1::uuid[])" };

answerQuestions(async ({ databaseUrl, amqpUrl, poolSize }: ByHandQuestion) => {
  const pool = new Pool({ connectionString: databaseUrl, max: poolSize });
  const channel = await (await connect(amqpUrl)).createConfirmChannel();
  await channel.assertQueue(messages, ofQuorum);
  let confirmed: string[] = [];
  setInterval(() => {
    if (confirmed.length > 0) void pool.query({ ...remove, values: [confirmed] });
    confirmed = [];
  }, flushMs);

  const create = async (text: string): Promise<string> => {
    const { title, body } = JSON.parse(text) as { readonly title: string; readonly body: string };
    const id = randomUUID();
    const { rows } = await pool.query<object>({ ...insert, values: [title, body, id] });
    const message = Buffer.from(JSON.stringify({ id, data: rows[0] }));
    channel.sendToQueue(messages, message, { persistent: true }, () => void confirmed.push(id));
    return JSON.stringify({ data: rows[0] });
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      void create(Buffer.concat(chunks).toString()).then((json) =>
        response.writeHead(201, { "content-type": "application/json" }).end(json),
      );
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { port: (server.address() as AddressInfo).port };
});
