import { actorOf } from "../http/actor.ts";
import { jsonAnswer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import { checkConditions } from "../http/conditional.ts";
import { requireScope } from "../http/scope-check.ts";
import { paramOf, type ApiContext, type ApiRouter } from "../http/state.ts";
import type { PostOptions } from "../http/idempotency.ts";
import { urlBelow } from "../http/url-of.ts";
import { AppError, validationError } from "../kit/errors.ts";
import { missingScope } from "../kit/scopes.ts";
import { readTokenBody, readUserBody, type TokenBody, type UserBody } from "./bodies.ts";
import { idOf } from "../kit/ids.ts";
import { answerOwnList, type OwnListOptions } from "../querying/own-list.ts";
import { parseDateText } from "../validation/dates.ts";
import { allUsers, tokensOf } from "./lists.ts";
import { presentToken, presentUser } from "./present.ts";
import type { TokenInfo, TokenProvider } from "./provider.ts";
import type { JwtSubject, User, UserChanges, UserRefusal, UserStore } from "./store.ts";

/** Dependencies of the routes of users and tokens. */
export interface UserRoutesOptions extends OwnListOptions, PostOptions {
  readonly users: UserStore;
  readonly tokens: TokenProvider;
  /** Names of resources that scopes may contain. */
  readonly resources: readonly string[];
  /** Issuer of JWTs. Undefined: JWTs are not accepted. */
  readonly issuer: string | undefined;
  /** Limit of tokens in force for users without the admin flag. */
  readonly maxTokensPerUser: number;
}

/**
 * Scope for setting the `subject` of a user. The subject decides who has all rights of the user, so
 * a limited token must not set it.
 */
const subjectScope = "*";

/** Adds `GET whoami`, which returns the token's user. */
export function addWhoamiRoute(router: ApiRouter): void {
  router.get("/whoami", (ctx) => {
    const { id, name, email } = ctx.state.caller;
    ctx.body = { id, name, email };
  });
}

/**
 * Adds `tokens` (docs/authentication.md, "Own tokens"): lists, creates and revokes the caller's own
 * tokens.
 */
export function addTokenRoutes(router: ApiRouter, options: UserRoutesOptions): void {
  const { tokens } = options;

  router.get("/tokens", async (ctx) => {
    ctx.body = await answerOwnList(ctx, tokensOf(ctx.state.caller.id), options);
  });

  router.post("/tokens", async (ctx) => {
    await answerNewToken(ctx, ctx.state.caller.id, options);
  });

  router.get("/tokens/:id", async (ctx) => {
    ctx.body = presentToken(await findToken(tokens, ctx.state.caller.id, idOf(ctx.params["id"])));
  });

  router.delete("/tokens/:id", async (ctx) => {
    const id = idOf(ctx.params["id"]);
    const token = await findToken(tokens, ctx.state.caller.id, id);
    // A token that may read one resource must not end its user's other tokens.
    requireScopes(ctx, token.scopes);
    checkConditions(ctx, undefined);
    await tokens.revoke(token.id, actorOf(ctx));
    ctx.status = 204;
  });
}

/** Adds `users` (docs/authentication.md, "Users"), for admins only: see `guardRoutes`. */
export function addUserRoutes(router: ApiRouter, options: UserRoutesOptions): void {
  const { users, issuer } = options;

  router.get("/users", async (ctx) => {
    ctx.body = await answerOwnList(ctx, allUsers, options);
  });

  router.post("/users", async (ctx) => {
    const body = await readJsonBody(ctx);
    if (body["subject"] !== undefined) requireScope(ctx, subjectScope);
    await options.answerPost(ctx, {
      async act(transaction) {
        // Checked here, because the kept answer must come first: a reload may have turned subjects
        // off.
        const given = await readUserBody(body, { isNew: true, hasSubjects: issuer !== undefined });
        const { name = "", email = "", isAdmin = false } = given;
        const user = { name, email, isAdmin, ...jwtOf(given, issuer) };
        const created = await users.create(user, actorOf(ctx), transaction?.sql);
        if (created.kind !== "created") throw takenError(created);
        const headers = { Location: urlBelow(options.urlOf(ctx), created.user.id) };
        return jsonAnswer(201, presentUser(created.user), headers);
      },
    });
  });

  router.get("/users/:id", async (ctx) => {
    ctx.body = presentUser(await getUser(ctx, users));
  });

  const change = async (ctx: ApiContext): Promise<void> => {
    const { id } = await getUser(ctx, users);
    checkConditions(ctx, undefined);
    const body = await readJsonBody(ctx);
    const given = await readUserBody(body, { isNew: false, hasSubjects: issuer !== undefined });
    if (given.subject !== undefined) requireScope(ctx, subjectScope);
    const updated = await users.update(id, changesOf(given, issuer), actorOf(ctx));
    if (updated.kind === "missing") throw unknownUser();
    if (updated.kind === "last_admin")
      throw new AppError("user.last_admin", "This user is the last admin. Make another one first.");
    if (updated.kind !== "updated") throw takenError(updated);
    ctx.body = presentUser(updated.user);
  };
  router.put("/users/:id", change);
  router.patch("/users/:id", change);

  router.get("/users/:id/tokens", async (ctx) => {
    const { id } = await getUser(ctx, users);
    ctx.body = await answerOwnList(ctx, tokensOf(id), options);
  });

  router.get("/users/:id/tokens/:tokenId", async (ctx) => {
    ctx.body = presentToken(await findTokenOf(ctx, options.tokens));
  });

  router.delete("/users/:id/tokens/:tokenId", async (ctx) => {
    const token = await findTokenOf(ctx, options.tokens);
    checkConditions(ctx, undefined);
    // A token with the scope `admin` may disable the user, which has a larger effect.
    await options.tokens.revoke(token.id, actorOf(ctx));
    ctx.status = 204;
  });

  router.post("/users/:id/tokens", async (ctx) => {
    const { id } = await getUser(ctx, users);
    await answerNewToken(ctx, id, options);
  });
}

async function findTokenOf(ctx: ApiContext, tokens: TokenProvider): Promise<TokenInfo> {
  return findToken(tokens, userIdOf(ctx), idOf(paramOf(ctx, "tokenId")));
}

/** Returns the token. Throws 404 unless it belongs to this user. */
async function findToken(tokens: TokenProvider, userId: number, id: number | undefined): Promise<TokenInfo> {
  const token = id === undefined ? undefined : await tokens.findInfo(id);
  if (token?.userId !== userId) throw new AppError("token.not_found", "The token could not be found.");
  return token;
}

/**
 * Creates a token that has no more permissions than the token of the request, and does not live
 * longer. A stolen token could otherwise be traded for a better one.
 */
async function answerNewToken(
  ctx: ApiContext,
  userId: number,
  { tokens, resources, maxTokensPerUser, answerPost, urlOf }: UserRoutesOptions,
): Promise<void> {
  const { caller, tokenId, grant } = ctx.state;
  const given = await readJsonBody(ctx);
  const madeWith = { tokenId, userId: caller.id };
  const mostInForce = caller.isAdmin ? undefined : maxTokensPerUser;
  const end = typeof given["expires_at"] === "string" ? parseDateText(given["expires_at"].trim()) : undefined;
  const isTooLate = end !== undefined && grant.expiresAt !== undefined && end > grant.expiresAt;
  await answerPost(ctx, {
    isSecret: true,
    // A token with fewer scopes must not get the answer to one with more scopes. A token that ends
    // sooner must not get the answer to one that ends later.
    dependsOn: JSON.stringify([
      [...grant.scopes].toSorted(),
      end === undefined ? grant.expiresAt : isTooLate || undefined,
    ]),
    async act(transaction) {
      // Checked here, because the kept answer to a repeated request must come first.
      const body = await readTokenBody(given, resources);
      const { name, scopes = grant.scopes, expiresAt = grant.expiresAt }: TokenBody = body;
      requireScopes(ctx, scopes);
      if (isTooLate)
        throw validationError({
          expires_at: [`A token made with this one ends by ${grant.expiresAt?.toISOString()}.`],
        });
      const wanted = { userId, name, scopes, expiresAt, mostInForce, madeWith, actor: actorOf(ctx) };
      const issued = await tokens.issue({ ...wanted, transaction: transaction?.sql });
      const { id, ...shown } = presentToken(issued);
      const headers = { Location: urlBelow(urlOf(ctx), id) };
      return jsonAnswer(201, { id, token: issued.token, ...shown }, headers);
    },
  });
}

/** Throws 403 `token.scope` for the first scope that the request's token does not include. */
function requireScopes(ctx: ApiContext, scopes: readonly string[]): void {
  const missing = missingScope(ctx.state.grant.scopes, scopes);
  if (missing !== undefined) requireScope(ctx, missing);
}

function jwtOf({ subject }: UserBody, issuer: string | undefined): Partial<JwtSubject> {
  return typeof subject === "string" && issuer !== undefined ? { issuer, subject } : {};
}

function changesOf({ subject, ...changes }: UserBody, issuer: string | undefined): UserChanges {
  if (subject === undefined) return changes;
  return { ...changes, jwt: subject === null || issuer === undefined ? null : { issuer, subject } };
}

function takenError({ kind }: UserRefusal): AppError {
  const field = kind === "email_taken" ? "email" : "subject";
  return validationError({ [field]: [`The ${field} has already been taken.`] });
}

function userIdOf(ctx: ApiContext): number {
  const id = idOf(paramOf(ctx, "id"));
  if (id === undefined) throw unknownUser();
  return id;
}

/** Returns the user in the path. Throws 404 without one. */
async function getUser(ctx: ApiContext, users: UserStore): Promise<User> {
  const user = await users.find(userIdOf(ctx));
  if (user === undefined) throw unknownUser();
  return user;
}

function unknownUser(): AppError {
  return new AppError("user.not_found", "The user could not be found.");
}
