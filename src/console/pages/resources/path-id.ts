/**
 * Reads the id of a record at the end of a path, as `encodeURIComponent` wrote it there. The
 * parameters of the router keep `%2C`, `%2F`, `%40` and others as they are.
 */
export function idAtEnd(path: string): string {
  const last = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(last);
  } catch {
    // Typed by hand, such as `100%`.
    return last;
  }
}
