/**
 * Returns a moment in the format of a control of the type `datetime-local`, to the second;
 * undefined for a text that is no valid time.
 */
export function toLocalTime(iso: string): string | undefined {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return undefined;
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  // Years beyond 9999 begin with a sign, which the control does not accept.
  return local.toISOString().replace(/^\+0*/, "").replace(/\..*/, "");
}

/** Returns the moment of such a text in UTC; unchanged when the API has to refuse it. */
export function fromLocalTime(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}
