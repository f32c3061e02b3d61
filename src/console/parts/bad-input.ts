const wholes: Readonly<Record<string, string>> = { date: "date", "datetime-local": "date and time" };

/**
 * Returns advice for an input with an incomplete date, or with no number; null for all others. The
 * `value` of such an input is "", like that of an empty one.
 */
export function badInputMessage({ type, validity }: HTMLInputElement): string | null {
  if (!validity.badInput) return null;
  const whole = wholes[type];
  return whole === undefined
    ? "This is not a number. Correct it, or clear it."
    : `Fill in the whole ${whole}, or clear it.`;
}

/**
 * Moves the focus to the first input of a form with an incomplete date, or with no number; its
 * `TextField` shows a message. Returns true when there is such an input: the form must not be sent.
 */
export function goToBadInput(form: HTMLFormElement): boolean {
  for (const input of form.elements)
    if (input instanceof HTMLInputElement && input.validity.badInput) {
      // This notifies the field by the event `invalid`.
      input.checkValidity();
      input.focus();
      return true;
    }
  return false;
}
