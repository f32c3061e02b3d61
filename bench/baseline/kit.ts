import type { Context } from "koa";

export interface User {
  readonly id: number;
  readonly is_admin: boolean;
}

export interface Page {
  readonly page: number;
  readonly perPage: number;
}

export const userOf = (ctx: Context): User => ctx.state["user"] as User;
export const dateOf = (date: Date): string => `${date.toISOString().slice(0, -1)}+00:00`;

export function refuse(ctx: Context, status: number): void {
  ctx.status = status;
  ctx.body = { message: "Refused." };
}

export function refuseFaults(ctx: Context, errors: Readonly<Record<string, readonly string[]>>): boolean {
  const [first] = Object.values(errors);
  if (first === undefined) return false;
  ctx.status = 422;
  ctx.body = { message: first[0], errors };
  return true;
}

export function pageOf(ctx: Context): Page {
  return {
    page: positive(ctx.query["page"], 1),
    perPage: Math.min(positive(ctx.query["per_page"], 15), 100),
  };
}

/** Returns the numbered page of a list in the format of the service. */
export function envelopeOf(
  ctx: Context,
  {
    data,
    total,
    page,
    perPage,
    publicUrl,
  }: Page & { readonly data: readonly object[]; readonly total: number; readonly publicUrl: string },
): object {
  const lastPage = Math.max(1, Math.ceil(total / perPage));
  const urlOf = (number: number): string => {
    const url = new URL(ctx.originalUrl, publicUrl);
    url.searchParams.set("page", String(number));
    return url.href;
  };
  return {
    data,
    current_page: page,
    last_page: lastPage,
    per_page: perPage,
    total,
    next_page_url: page < lastPage ? urlOf(page + 1) : null,
    prev_page_url: page > 1 ? urlOf(Math.min(page - 1, lastPage)) : null,
  };
}

export function positive(text: unknown, otherwise: number): number {
  return typeof text === "string" && /^[1-9]\d*$/.test(text) ? Number(text) : otherwise;
}

export function trimmed(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, typeof value === "string" ? value.trim() : value]),
  );
}
