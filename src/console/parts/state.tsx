import type { UseQueryResult } from "@tanstack/react-query";
import type { JSX, ReactNode } from "react";
import { ApiError, isAway, isStatus, isTooSlow, LoadError } from "../api/api-error.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { useUrlState } from "./url-state.ts";
import "./state.css";

/** Shows that there is no data, and what to do next. */
export function Empty({
  icon = "search",
  title,
  children,
  action,
}: {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}): JSX.Element {
  return (
    <div className="state">
      <span className="state-icon">
        <Icon name={icon} size={20} />
      </span>
      <p className="state-title">{title}</p>
      {children !== undefined && <div className="state-text muted">{children}</div>}
      {action}
    </div>
  );
}

/** Shows which scope the token lacks, before the user types something that would be refused. */
export function ScopeNote({ scope }: { readonly scope: string }): JSX.Element {
  return (
    <Empty icon="key" title="Your token may not do this">
      <p className="break">This token lacks the scope {scope}.</p>
    </Empty>
  );
}

/** Shows an error as a sentence, with the remedy. */
export function ErrorNote({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => unknown;
}): JSX.Element {
  const url = useUrlState();
  const { title, text } = describe(error);
  // Parameters of a list that can be removed.
  const wrong =
    error instanceof ApiError ? Object.keys(error.fields).filter((one) => url.search.has(one)) : [];
  const isForbidden = error instanceof ApiError && error.status === 403;
  return (
    <div className={`state ${isForbidden ? "" : "bad"}`} role="alert">
      <span className="state-icon">
        <Icon name={isForbidden ? "key" : "alert"} size={20} />
      </span>
      <p className="state-title">{title}</p>
      <div className="state-text muted break">
        <p>{text}</p>
        <RequestId error={error} />
      </div>
      {wrong.length > 0 ? (
        <Button icon="up" onPress={() => url.clear(wrong)}>
          {/* The cursor in a link may belong to another user. */}
          {wrong.every((name) => name === "cursor") ? "To the first page" : "Show the list without that"}
        </Button>
      ) : (
        onRetry !== undefined &&
        !isForbidden && (
          <Button icon="refresh" onPress={() => void onRetry()}>
            Try again
          </Button>
        )
      )}
    </div>
  );
}

const slowAdvice =
  "Try again, or ask for less: fewer rows, another filter. If that does not help, tell who runs the service.";

function describe(error: unknown): { readonly title: string; readonly text: string } {
  if (error instanceof LoadError) return { title: "This page did not load", text: error.message };
  if (!(error instanceof ApiError))
    return { title: "The console had a fault", text: error instanceof Error ? error.message : String(error) };
  const text = error.message;
  // The service's own 503: among others, a list that has exceeded its time limit.
  if (isAway(error) && error.code !== "")
    return {
      title: "The service cannot answer at the moment",
      text: "It is asked again every 3 seconds. If only this page has no answer, ask for less: fewer rows, another filter.",
    };
  if (isAway(error))
    return {
      title: "The service does not answer",
      text: "It is asked again every 3 seconds. Nothing is lost.",
    };
  if (isTooSlow(error)) return { title: "The service takes too long", text: `${text} ${slowAdvice}` };
  if (error.code === "token.scope") return { title: "Your token may not see this", text };
  if (error.code === "user.forbidden") return { title: "This is for admins", text };
  if (error.status === 403) return { title: "You may not see this", text };
  if (error.status === 404) return { title: "There is nothing here", text };
  if (error.status === 401) return { title: "You are signed out", text };
  if (error.status === 429) return { title: "Too many requests", text: withWait(error) };
  return { title: "That did not work", text };
}

/** Adds the time of the next permitted try to the sentence of a 429. */
function withWait({ message, retryAfterSeconds: seconds }: ApiError): string {
  return `${message} Try again in ${seconds === null ? "a moment" : `${seconds} s`}.`;
}

/** Shows the id of the request when the service's log has details. */
function RequestId({ error }: { readonly error: unknown }): JSX.Element | null {
  if (!(error instanceof ApiError) || error.status < 500 || error.requestId === null) return null;
  return (
    <p className="small">
      Request <code>{error.requestId}</code>
    </p>
  );
}

/** Shows an error in one line, above a form or a list. */
export function ErrorLine({ error }: { readonly error: unknown }): JSX.Element | null {
  if (error === null || error === undefined) return null;
  const text = isAway(error)
    ? "The service does not answer: whether this was done is not known. Look, or try again."
    : isTooSlow(error)
      ? `${messageOf(error)} Whether this was done is not known. Look, or try again.`
      : isStatus(error, 429)
        ? withWait(error)
        : isStatus(error, 401)
          ? "You were signed out, so this was not done. Try again."
          : messageOf(error);
  return (
    <Note tone="bad" role="alert">
      <p>{text}</p>
      <RequestId error={error} />
    </Note>
  );
}

/** Shows sentences on a background in the colour of their tone. */
export function Note({
  tone,
  icon = "alert",
  role,
  children,
}: {
  readonly tone: "good" | "warn" | "bad";
  readonly icon?: IconName;
  readonly role?: "alert" | "status";
  readonly children: ReactNode;
}): JSX.Element {
  return (
    <div className={`note ${tone}`} role={role}>
      <Icon name={icon} />
      <div className="break">{children}</div>
    </div>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Shows a placeholder while data is loading. */
export function Loading(): JSX.Element {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: 6 }, (_, line) => (
        <span key={line} className="loading-line" aria-hidden="true" />
      ))}
    </div>
  );
}

/**
 * Shows the data of a query. Until there is data, shows a placeholder or the error. Shown data
 * stays when a later request fails, because a form in it may contain input.
 */
export function QueryView<T>({
  query,
  children,
}: {
  readonly query: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
}): JSX.Element {
  const { data, error } = query;
  if (data === undefined)
    return error === null ? <Loading /> : <ErrorNote error={error} onRetry={query.refetch} />;
  return (
    <>
      {isAway(error) ? (
        <Note tone="warn" role="status">
          The service does not answer. What you see is from before; it is asked again every 3 seconds.
        </Note>
      ) : (
        // The sign-in is already shown over the page.
        !isStatus(error, 401) && <ErrorLine error={error} />
      )}
      {children(data)}
    </>
  );
}
