import type { ApiContext } from "./state.ts";

/** A JSON answer that is not sent yet. */
export interface Answer {
  readonly status: number;
  /** Headers in addition to those of every answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly json: string;
}

/** Returns the answer with a value as its JSON. */
export function jsonAnswer(status: number, value: unknown, headers: Answer["headers"] = {}): Answer {
  return { status, headers, json: JSON.stringify(value) };
}

/** Writes an answer to the response. */
export function send(ctx: ApiContext, { status, headers, json }: Answer): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.type = "json";
  ctx.body = json;
}
