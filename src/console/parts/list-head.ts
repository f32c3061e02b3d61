/**
 * Scrolls from the foot of a list, where a page is turned, to its head. The next rows then start at
 * the top. Moves the focus too, so that Tab leads into the rows.
 */
export function goToListHead(foot: Element): void {
  const list = foot.closest<HTMLElement>(".card");
  list?.scrollIntoView();
  list?.querySelector<HTMLElement>(".table-frame")?.focus({ preventScroll: true });
}
