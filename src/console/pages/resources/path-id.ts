/**
 * Returns the id of a record at the end of a path, where `encodeURIComponent` wrote it. The
 * parameters of the router leave `%2C`, `%2F`, `%40` and others encoded.
 */
export function idAtEnd(path: string): string {
  const last = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(last);
  } catch {
    // The path was typed by hand, such as `100%`.
    return last;
  }
}
