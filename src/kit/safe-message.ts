/** Errors with messages of this service, which are shown unchanged. */
const ownErrors = new Set(["AppError", "OperatorError"]);

/**
 * Returns the message of an error without data that it may quote. Pure.
 *
 * PostgreSQL quotes the value that it cannot read. Prisma prints the arguments of the whole call, a
 * JSON parser the text around the fault, HTTP clients the URL. The rest of the message describes
 * the fault without the value.
 */
export function safeMessage(error: Error): string {
  if (ownErrors.has(error.name)) return error.message;
  return withoutUrlSecrets(withoutValues(error));
}

function withoutValues(error: Error): string {
  const { message } = error;
  // Prisma prints the call's arguments first, the reason last.
  const text = error.name.startsWith("PrismaClient") ? lastLineOf(message) : message;
  const isAboutValue =
    isValueState(error) ||
    error.name === "PrismaClientValidationError" ||
    (error instanceof SyntaxError && message.includes("JSON"));
  // Replaces from the first quotation mark to the last, since a value may contain quotation marks.
  return isAboutValue ? text.replace(/"[^]*"/, '"…"').replace(/'[^]{2,}'/, "'…'") : text;
}

/**
 * Returns whether PostgreSQL refused a value: SQLSTATE class 22, in the error of pg, of the adapter
 * or of Prisma.
 */
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
 * Keeps only the scheme and host of each URL: a user name, password, path or query may be a secret.
 * Works word by word, because a pattern over the whole text would take time with the square of its
 * length.
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
