/** Returns why a text cannot be the name of a user or a token; undefined when it can. */
export function nameFault(text: string): string | undefined {
  if (text === "") return "A name is needed.";
  const isFit = text.length <= 255 && !/[\p{Cc}\p{Surrogate}]/u.test(text);
  return isFit ? undefined : "A name has at most 255 characters and no control characters.";
}

/**
 * Returns why a text cannot be an e-mail address; undefined when it may be one. Only a mail could
 * prove the address.
 */
export function emailFault(text: string): string | undefined {
  const isFit = text.length <= 254 && /^[^\s@\p{Cc}\p{Surrogate}]+@[^\s@\p{Cc}\p{Surrogate}]+$/u.test(text);
  return isFit ? undefined : "An e-mail address is needed, such as ada@example.com.";
}

/** Returns the fault of the subject of JWTs, as a sentence; undefined without one. */
export function subjectFault(subject: string): string | undefined {
  if (subject === "" || subject.length > 255) return "A subject has 1 to 255 characters.";
  return /[\p{Cc}\p{Surrogate}]/u.test(subject) ? "A subject has no control characters." : undefined;
}
