/**
 * Bytes of memory per byte of a request's body. It counts the chunks, the text, the parsed strings
 * and the validated copy; then the statement, its result, the event and the answer. Measured with
 * `npm run attack`.
 */
export const memoryPerBodyByte = 12;

/**
 * Returns the minimum memory budget. One user may take half of it, and a body of the largest size
 * must fit into that half.
 */
export function leastBudgetOf(bodyLimitBytes: number): number {
  return 2 * memoryPerBodyByte * bodyLimitBytes;
}
