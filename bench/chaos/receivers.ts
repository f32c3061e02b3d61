/**
 * The webhook receivers, in a separate process. Each has a port, can misbehave, and records what it
 * gets: one line of facts per POST, because a long run has hundreds of thousands.
 */
import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
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

/**
 * Answers of a receiver: `well` 204; `flaky` the same, but 503 to every twentieth POST; `broken`
 * 500 to each.
 */
export type Manner = "well" | "flaky" | "broken" | "down" | "hanging" | "resetting" | "dripping" | "endless";

export type ReceiversQuestion =
  /** Opens one receiver for each manner, and returns their ports. */
  | { readonly kind: "open"; readonly manners: readonly Manner[] }
  /**
   * A subscription, by the path of its URL, is about to get another secret. Requests under an
   * unknown secret wait for it.
   */
  | { readonly kind: "rotating"; readonly path: string }
  /**
   * A signing secret of a subscription. Earlier secrets stay valid for the requests that they
   * signed.
   */
  | { readonly kind: "secret"; readonly path: string; readonly secret: string }
  | { readonly kind: "behave"; readonly receiver: number; readonly manner: Manner }
  /** Returns the settled arrivals since the last such question. */
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

/** A POST with the data that proves its signature. */
interface Unproved {
  readonly arrival: Omit<Arrival, "isGenuine">;
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: Buffer;
  readonly areIdsThose: boolean;
}

const places: Place[] = [];
/** Secrets by path, the newest last. */
const secrets = new Map<string, readonly string[]>();
const rotating = new Set<string>();
let settled: Unproved[] = [];
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
  else if (question.kind === "rotating") rotating.add(question.path);
  else if (question.kind === "secret") learn(question);
  else if (question.kind === "behave") await behave(question.receiver, question.manner);
  return { ports: places.map(({ port }) => port), arrivals: question.kind === "take" ? take() : [] };
});

function learn({ path, secret }: { readonly path: string; readonly secret: string }): void {
  const known = secrets.get(path) ?? [];
  if (!known.includes(secret)) secrets.set(path, [...known, secret]);
  rotating.delete(path);
}

/** Returns the POSTs that are proved, and those that never will be. */
function take(): readonly Arrival[] {
  const judged = settled.map((one) => ({ one, isProved: isGenuine(one) }));
  const mayWait = ({ one, isProved }: (typeof judged)[number]): boolean =>
    !isProved && rotating.has(one.arrival.path);
  settled = judged.filter(mayWait).map(({ one }) => one);
  return judged
    .filter((one) => !mayWait(one))
    .map(({ one, isProved }) => ({ ...one.arrival, isGenuine: isProved }));
}

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
  const { arrival, ...proof } = arrivalOf(request, receiver);
  response.once("close", () =>
    settled.push({ ...proof, arrival: { ...arrival, answer: answerOf(response) } }),
  );
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
): Omit<Unproved, "arrival"> & { readonly arrival: Omit<Arrival, "answer" | "isGenuine"> } {
  const body = JSON.parse(rawBody.toString()) as Body;
  const delivery = String(headers["x-service-delivery"]);
  const event = String(headers["x-service-event"]);
  const arrival = {
    receiver,
    path,
    change: `${body.event} ${body.data.text}`,
    delivery,
    event,
    occurredAtMs: Date.parse(body.timestamp),
    receivedAtMs: receivedAt.getTime(),
    digest: createHash("sha256").update(rawBody).digest("base64url").slice(0, 12),
  };
  return { arrival, headers, rawBody, areIdsThose: body.delivery_id === delivery && body.event_id === event };
}

/**
 * Returns whether one secret of the subscription made both signatures, and another one the
 * signature of the previous secret.
 */
function isGenuine({ arrival: { path, delivery }, headers, rawBody, areIdsThose }: Unproved): boolean {
  const known = secrets.get(path) ?? [];
  const sign = (secret: string): string =>
    `sha256=${createHmac("sha256", secret).update(rawBody).digest("hex")}`;
  const newest = known.find((secret) => sign(secret) === headers["x-service-signature"]);
  const previous = headers["x-service-signature-previous"];
  const signed = `${delivery}.${String(headers["webhook-timestamp"])}.${rawBody.toString()}`;
  const standard = createHmac("sha256", newest ?? "")
    .update(signed)
    .digest("base64");
  return (
    areIdsThose &&
    newest !== undefined &&
    (previous === undefined || known.some((secret) => secret !== newest && sign(secret) === previous)) &&
    String(headers["webhook-signature"]).split(" ")[0] === `v1,${standard}`
  );
}
