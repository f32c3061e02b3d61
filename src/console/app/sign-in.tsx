import { useEffect, useRef, useState, type JSX, type SubmitEvent } from "react";
import { api } from "../api/client.ts";
import { isStatus } from "../api/api-error.ts";
import { queryClient, refresh } from "../api/query-client.ts";
import type { Caller } from "../api/types.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { TextField } from "../parts/field.tsx";
import { ErrorLine, messageOf } from "../parts/state.tsx";
import { navigate } from "wouter/use-browser-location";
import { signOut } from "./caller.ts";
import { Logo } from "./logo.tsx";
import { finishSignIn, signInByRedirect, signInByWindow, type IssuedTokens } from "./pkce.ts";
import { place } from "./place.ts";
import { currentUser, startSession } from "./session.ts";
import "../parts/page.css";
import "./sign-in.css";

/** Shows the sign-in before there is a page. */
export function SignInPage(): JSX.Element {
  useEffect(() => {
    document.title = "Sign in · svc";
  }, []);
  return (
    <main className="sign-in-page">
      <div className="sign-in card stack">
        <div className="row">
          <Logo />
          <h1>Sign in to svc</h1>
        </div>
        <SignInForm
          onIssuer={() => signInByRedirect(location.pathname.slice(place.basePath.length) + location.search)}
        />
      </div>
    </main>
  );
}

/** Shows the sign-in over the page, which keeps its input. */
export function SignInAgain({ reason }: { readonly reason: string }): JSX.Element {
  const last = useRef<AbortController>(undefined);
  useEffect(() => () => last.current?.abort(), []);
  const signInAside = async (): Promise<void> => {
    // Aborts the earlier window's sign-in. No event reports whether that window is closed.
    last.current?.abort();
    const controller = new AbortController();
    last.current = controller;
    const { signal } = controller;
    try {
      await takeTokens(await signInByWindow(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  return (
    <Dialog title="Sign in again" isRequired onClose={() => undefined}>
      <div className="sign-in stack">
        <p>
          {reason} <span className="muted">What you have typed is still here.</span>
        </p>
        <SignInForm isAside onIssuer={signInAside} />
        <Button kind="quiet" onPress={signOut}>
          Sign out
        </Button>
      </div>
    </Dialog>
  );
}

/** Completes a sign-in after the issuer has redirected the browser back. */
export function SignedIn({ onDone }: { readonly onDone: (path: string) => void }): JSX.Element {
  const [error, setError] = useState<unknown>(null);
  const begun = useRef(false);
  useEffect(() => {
    // A code is valid for one exchange, and React's strict mode runs effects twice.
    if (begun.current) return;
    begun.current = true;
    void (async () => {
      try {
        const finished = await finishSignIn();
        if (finished === null) return;
        await takeTokens(finished);
        onDone(finished.path);
      } catch (thrown) {
        setError(thrown);
      }
    })();
  }, [onDone]);
  return (
    <main className="sign-in-page">
      <div className="sign-in card stack">
        <h1>{error === null ? "Signing in…" : "The sign-in did not work"}</h1>
        {/* Nobody was signed out: the API refuses the user or the token, and says why. */}
        <ErrorLine error={isStatus(error, 401) ? new Error(error.message) : error} />
        {error !== null && <Button onPress={() => onDone("/")}>Begin again</Button>}
      </div>
    </main>
  );
}

function SignInForm({
  onIssuer,
  isAside = false,
}: {
  readonly onIssuer: () => Promise<void>;
  /** Whether the issuer opens in another window, so that the form stays meanwhile. */
  readonly isAside?: boolean;
}): JSX.Element {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const attempt = async (act: () => Promise<void>, waits = true): Promise<void> => {
    setBusy(waits);
    setError(null);
    try {
      await act();
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Also accepts a token that was copied with the word `Bearer`.
    const given = token.trim().replace(/^Bearer\s+/i, "");
    if (given !== "") void attempt(() => takeTokens({ token: given, refreshToken: null }));
  };
  return (
    <>
      {place.jwt !== null && (
        <>
          <Button kind="primary" autoFocus isBusy={isBusy} onPress={() => void attempt(onIssuer, !isAside)}>
            Sign in with {hostOf(place.jwt.issuer)}
          </Button>
          <div className="sign-in-or">or with a token</div>
        </>
      )}
      <form className="stack" onSubmit={submit}>
        <TextField
          label="Token"
          type="password"
          isRequired
          autoFocus={place.jwt === null}
          value={token}
          onChange={setToken}
          hint="Kept for this tab only. An admin creates one with: svc-admin tokens create"
          errors={error === null ? undefined : [messageOf(error)]}
        />
        <Button type="submit" kind={place.jwt === null ? "primary" : "plain"} isBusy={isBusy}>
          Sign in
        </Button>
      </form>
    </>
  );
}

/**
 * Starts a session with tokens that the API accepts, and reloads the shown data. A different user
 * sees none of the previous data.
 */
async function takeTokens(tokens: IssuedTokens): Promise<void> {
  // Browsers refuse to send other characters, which would look as if the service were unavailable.
  if (!/^[!-~]+$/.test(tokens.token)) throw new Error("That is no token. Copy it again, all of it.");
  const before = queryClient.getQueryData<Caller>(["/whoami"]);
  const user = currentUser();
  const caller = await api<Caller>("/whoami", { token: tokens.token });
  // The user has signed out since the request began.
  if (currentUser() !== user) return;
  const isOther = before !== undefined && before.id !== caller.id;
  if (isOther) {
    queryClient.clear();
    navigate(`${place.basePath}/`);
  }
  startSession(tokens, isOther);
  queryClient.setQueryData(["/whoami"], caller);
  await refresh();
}

function hostOf(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).host : issuer;
}
