/**
 * The receivers of the user who holds up, in a separate process. Each can misbehave, and counts its
 * deliveries.
 */
import {
  type Behaviour,
  hang,
  reply,
  startReceiver,
  type TestReceiver,
} from "../../test/support/receiver.ts";
import { answerQuestions } from "../peer.ts";

export type Manner = "fast" | "slow" | "hanging" | "failing";

export type ReceiversQuestion =
  | { readonly kind: "open"; readonly manner: Manner }
  | { readonly kind: "behave"; readonly port: number; readonly manner: Manner }
  | { readonly kind: "look"; readonly port: number };

export interface ReceiversAnswer {
  readonly port: number;
  /** Different deliveries so far. */
  readonly count: number;
}

const manners: Readonly<Record<Manner, Behaviour>> = {
  fast: (_request, response) => reply(response, { status: 204 }),
  slow: (_request, response) => reply(response, { status: 204, delayMs: 1_000 }),
  hanging: hang,
  failing: (_request, response) => reply(response, { status: 500 }),
};

interface Opened {
  readonly receiver: TestReceiver;
  readonly seen: Set<string>;
}

const opened = new Map<number, Opened>();

answerQuestions(async (question: ReceiversQuestion): Promise<ReceiversAnswer> => {
  if (question.kind === "open") {
    const receiver = await startReceiver({ isForgetful: true });
    opened.set(receiver.port, { receiver, seen: new Set() });
    behave(receiver.port, question.manner);
    return { port: receiver.port, count: 0 };
  }
  const { port } = question;
  if (question.kind === "behave") behave(port, question.manner);
  return { port, count: opened.get(port)?.seen.size ?? 0 };
});

function behave(port: number, manner: Manner): void {
  const found = opened.get(port);
  if (found === undefined) throw new Error(`there is no receiver on port ${port}`);
  const { receiver, seen } = found;
  receiver.answer = (request, response) => {
    seen.add(String(request.headers["x-service-delivery"]));
    manners[manner](request, response);
  };
}
