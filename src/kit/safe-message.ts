/** Errors that this service words itself: for people to read as they are. */
const ownErrors = new Set(["AppError", "OperatorError"]);

/**
 * The message of an error without what it may have caught of somebody's data. Pure.
 *
 * PostgreSQL quotes the value that it cannot read, Prisma prints the arguments of the whole call, a JSON parser the text around the
 * fault, and errors of clients the URL that they were given. What is left says what went wrong, and not with which value.
 */
export function safeMessage(error: Error): string {
  if (ownErrors.has(error.name)) return error.message;
  return withoutUrlSecrets(withoutValues(error));
}

function withoutValues(error: Error): string {
  const { message } = error;
  // The call's arguments come first, the complaint last.
  const text = error.name.startsWith("PrismaClient") ? lastLineOf(message) : message;
  const isAboutValue =
    isValueState(error) ||
    error.name === "PrismaClientValidationError" ||
    (error instanceof SyntaxError && message.includes("JSON"));
  // From the first quotation mark to the last: a value may hold some itself.
  return isAboutValue ? text.replace(/"[^]*"/, '"…"').replace(/'[^]{2,}'/, "'…'") : text;
}

/** Whether PostgreSQL complained of a value: SQLSTATE class 22, in pg's error, the adapter's or Prisma's. */
function isValueState(error: Error): boolean {
  const { code, cause } = error as Error & { readonly code?: unknown };
  const original = (cause as { readonly originalCode?: unknown } | undefined)?.originalCode;
  return (
    [code, original].some((state) => typeof state === "string" && /^22[0-9A-Z]{3}$/.test(state)) ||
    /Code: `22/.test(error.message)
  );
}

function lastLineOf(text: string): string {
  return text.trim().split("\n").at(-1)?.trim() ?? "";
}

/**
 * Of a URL its scheme and host: user names, passwords, paths and queries may each be a secret.
 * Word by word: a pattern over the whole text would take time with the square of its length.
 */
function withoutUrlSecrets(text: string): string {
  return text.replace(/[^\s"'`]+/g, (word) => withoutPath(withoutCredentials(word)));
}

function withoutCredentials(word: string): string {
  const start = word.indexOf("://") + "://".length;
  const end = word.lastIndexOf("@");
  return start > "://".length && end >= start ? `${word.slice(0, start)}…${word.slice(end)}` : word;
}

function withoutPath(word: string): string {
  const scheme = /\bhttps?:\/\//i.exec(word);
  if (scheme === null) return word;
  const host = scheme.index + scheme[0].length;
  const [, path] = /^[^/?#]+[/?#](.+)$/.exec(word.slice(host)) ?? [];
  return path === undefined ? word : `${word.slice(0, -path.length - 1)}/…`;
}
