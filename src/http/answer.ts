import type { ApiContext } from "./state.ts";

/** An answer of JSON that is not sent yet. */
export interface Answer {
  readonly status: number;
  /** Added to the headers that every answer has. */
  readonly headers: Readonly<Record<string, string>>;
  readonly json: string;
}

/** Gives an answer to the request. */
export function send(ctx: ApiContext, { status, headers, json }: Answer): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.type = "json";
  ctx.body = json;
}
