import { hashToken, mintToken } from "../../src/users/token.ts";
import { together } from "./attack.ts";
import type { Scene } from "./scene.ts";

/** Tokens of users who attack together. */
const tokens = Array.from({ length: 200 }, mintToken);

/** Makes the first `count` of these users. Their names begin with `eve `. */
export async function addAccomplices(scene: Scene, count: number): Promise<void> {
  await scene.sql(
    `WITH added AS (
       INSERT INTO svc.users (name, email) SELECT 'eve ' || hash, hash || '@example.com' FROM unnest($1::text[]) AS given (hash)
       ON CONFLICT DO NOTHING RETURNING id, name
     )
     INSERT INTO svc.tokens (user_id, name, hash) SELECT id, 'attack', decode(substr(name, 5), 'hex') FROM added`,
    [tokens.slice(0, count).map((token) => hashToken(token).toString("hex"))],
  );
}

/** Runs `width` clients, whose actions take the first `count` of the tokens in turn. */
export async function byAccomplices(
  count: number,
  width: number,
  signal: AbortSignal,
  act: (token: string) => Promise<unknown>,
): Promise<void> {
  let turn = 0;
  await together(width, signal, () => act(tokens[(turn += 1) % count] ?? ""));
}
