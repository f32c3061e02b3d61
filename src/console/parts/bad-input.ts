const wholes: Readonly<Record<string, string>> = {
  date: "date",
  time: "time",
  "datetime-local": "date and time",
};

/**
 * Says what to do with an input that holds half a date, or no number; null for all others. The
 * `value` of such an input is "", as that of an empty one.
 */
export function badInputMessage({ type, validity }: HTMLInputElement): string | null {
  if (!validity.badInput) return null;
  const whole = wholes[type];
  return whole === undefined
    ? "This is not a number. Correct it, or clear it."
    : `Fill in the whole ${whole}, or clear it.`;
}

/**
 * Goes to the first input of a form that holds half a date, or no number; its `TextField` shows a
 * message. Returns true when there is one, and nothing may be sent.
 */
export function goToBadInput(form: HTMLFormElement): boolean {
  for (const input of form.elements)
    if (input instanceof HTMLInputElement && input.validity.badInput) {
      // It tells the field by the event `invalid`.
      input.checkValidity();
      input.focus();
      return true;
    }
  return false;
}
