import { createStore } from "../parts/store.ts";
import { refreshTokens, type IssuedTokens } from "./pkce.ts";

/** Session of the user who is signed in, for this tab. */
export interface Session {
  readonly token: string | null;
  readonly refreshToken: string | null;
  /** Reason why the last session ended; null without one, or after a sign-out. */
  readonly ended: string | null;
  /** Number of users of this page so far. It keeps the input of one user from the next. */
  readonly user: number;
}

const key = "svc-console.session";
const none: Session = { token: null, refreshToken: null, ended: null, user: 0 };

function readStored(): Session {
  try {
    return { ...none, ...(JSON.parse(sessionStorage.getItem(key) ?? "{}") as Partial<Session>) };
  } catch {
    return none;
  }
}

const session = createStore(readStored());
let renewal: Promise<string | null> | null = null;

function set(next: Session): void {
  if (next.token === null) sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, JSON.stringify({ token: next.token, refreshToken: next.refreshToken }));
  session.set(next);
}

export function currentToken(): string | null {
  return session.get().token;
}

/** Returns the number of the current user, which changes at each sign-out. */
export function currentUser(): number {
  return session.get().user;
}

/** Stores a token that the API accepts. `isOther`: it belongs to another user than the last one. */
export function startSession(tokens: IssuedTokens, isOther = false): void {
  const user = isOther ? currentUser() + 1 : currentUser();
  set({ token: tokens.token, refreshToken: tokens.refreshToken, ended: null, user });
}

/**
 * Ends the session of `token`, which the API no longer accepts. The page stays, and the sign-in
 * opens over it.
 */
export function endSession(token: string | null, reason: string): void {
  // A 401 for an older token does not end the session of a newer one.
  if (token === null || token !== currentToken()) return;
  set({ ...session.get(), token: null, refreshToken: null, ended: reason });
}

/** Ends the session of the user who leaves. */
export function leaveSession(): void {
  set({ ...none, user: currentUser() + 1 });
}

/**
 * Returns the token to use after `token` was refused: a refreshed token, or that of a later
 * sign-in. Null when the user must sign in.
 */
export async function renewToken(token: string | null): Promise<string | null> {
  if (currentToken() !== token) return currentToken();
  const { refreshToken, user } = session.get();
  if (refreshToken === null) return null;
  renewal ??= refreshTokens(refreshToken)
    .then((tokens) => {
      // The user has signed out since the renewal began.
      if (currentUser() !== user) return null;
      // When an issuer sends no new refresh token, the old one stays valid.
      startSession({ ...tokens, refreshToken: tokens.refreshToken ?? refreshToken });
      return tokens.token;
    })
    .catch(() => null)
    .finally(() => {
      renewal = null;
    });
  return await renewal;
}

export const useSession = session.useValue;
