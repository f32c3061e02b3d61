/**
 * The webhook receivers, in a process of their own. Each has a port, can be made to misbehave and notes what comes: one line of
 * facts a POST, since a long run has hundreds of thousands.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { ServerResponse } from "node:http";
import { freePort } from "../../test/support/private-process.ts";
import {
  type Behaviour,
  dripBody,
  dripHead,
  endlessBody,
  hang,
  type ReceivedRequest,
  reply,
  reset,
  startReceiver,
  type TestReceiver,
} from "../../test/support/receiver.ts";
import { answerQuestions } from "../peer.ts";
import type { Arrival } from "./ledger.ts";

/** `well` answers 204; `flaky` the same, but 503 to every twentieth POST; `broken` 500 to each. */
export type Manner = "well" | "flaky" | "broken" | "down" | "hanging" | "resetting" | "dripping" | "endless";

export type ReceiversQuestion =
  /** Opens one receiver for each manner, and answers where. */
  | { readonly kind: "open"; readonly manners: readonly Manner[] }
  /** Signing secrets by the path of a subscription's URL. */
  | { readonly kind: "secrets"; readonly secrets: Readonly<Record<string, string>> }
  | { readonly kind: "behave"; readonly receiver: number; readonly manner: Manner }
  /** What has come and is settled since the last such question. */
  | { readonly kind: "take" };

export interface ReceiversAnswer {
  readonly ports: readonly number[];
  readonly arrivals: readonly Arrival[];
}

interface Place {
  readonly port: number;
  /** Undefined while nothing listens on the port. */
  server: TestReceiver | undefined;
}

const places: Place[] = [];
let secrets: Readonly<Record<string, string>> = {};
let settled: Arrival[] = [];
let count = 0;
const dripMs = 200;

const manners: Readonly<Record<Exclude<Manner, "down">, Behaviour>> = {
  well: (_request, response) => reply(response, { status: 204 }),
  flaky: (_request, response) => reply(response, { status: count % 20 === 0 ? 503 : 204 }),
  broken: (_request, response) => reply(response, { status: 500 }),
  hanging: hang,
  resetting: reset,
  dripping: (request, response) => (count % 2 === 0 ? dripHead : dripBody)(dripMs)(request, response),
  endless: endlessBody(),
};

answerQuestions(async (question: ReceiversQuestion): Promise<ReceiversAnswer> => {
  if (question.kind === "open") for (const manner of question.manners) await open(manner);
  else if (question.kind === "secrets") secrets = question.secrets;
  else if (question.kind === "behave") await behave(question.receiver, question.manner);
  const arrivals = settled;
  if (question.kind === "take") settled = [];
  return { ports: places.map(({ port }) => port), arrivals: question.kind === "take" ? arrivals : [] };
});

async function open(manner: Manner): Promise<void> {
  const place: Place = { port: await freePort(), server: undefined };
  places.push(place);
  await behave(places.indexOf(place), manner);
}

async function behave(receiver: number, manner: Manner): Promise<void> {
  const place = places[receiver];
  if (place === undefined) throw new Error(`there is no receiver ${receiver}`);
  if (manner === "down") {
    await place.server?.close();
    place.server = undefined;
    return;
  }
  place.server ??= await startReceiver({ port: place.port, isForgetful: true });
  place.server.answer = (request, response) => {
    count += 1;
    note(request, response, receiver);
    manners[manner](request, response);
  };
}

function note(request: ReceivedRequest, response: ServerResponse, receiver: number): void {
  const arrived = arrivalOf(request, receiver);
  response.once("close", () => settled.push({ ...arrived, answer: answerOf(response) }));
}

function answerOf(response: ServerResponse): Arrival["answer"] {
  const isSuccess = response.headersSent && response.statusCode < 300;
  if (response.writableFinished) return isSuccess ? "accepted" : "refused";
  return isSuccess ? "begun" : "none";
}

interface Body {
  readonly event: string;
  readonly event_id: string;
  readonly delivery_id: string;
  readonly timestamp: string;
  readonly data: { readonly text: string };
}

function arrivalOf(
  { path, headers, rawBody, receivedAt }: ReceivedRequest,
  receiver: number,
): Omit<Arrival, "answer"> {
  const body = JSON.parse(rawBody.toString()) as Body;
  const delivery = String(headers["x-service-delivery"]);
  const event = String(headers["x-service-event"]);
  const expected = `sha256=${createHmac("sha256", secrets[path] ?? "")
    .update(rawBody)
    .digest("hex")}`;
  return {
    receiver,
    path,
    change: `${body.event} ${body.data.text}`,
    delivery,
    event,
    occurredAtMs: Date.parse(body.timestamp),
    receivedAtMs: receivedAt.getTime(),
    digest: createHash("sha256").update(rawBody).digest("base64url").slice(0, 12),
    isGenuine:
      body.delivery_id === delivery &&
      body.event_id === event &&
      isSame(expected, String(headers["x-service-signature"])),
  };
}

function isSame(expected: string, given: string): boolean {
  return expected.length === given.length && timingSafeEqual(Buffer.from(expected), Buffer.from(given));
}
