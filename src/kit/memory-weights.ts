/**
 * Bytes of memory for one byte of a request's body: its chunks, the text, its strings in what is parsed, the copy that is validated, what goes
 * to the database and comes back, the event, the answer. Measured with the attacks of bench/.
 */
export const memoryPerBodyByte = 12;

/** The least that the memory budget must be: a user has half of it, and a body of the largest size must fit into that. */
export function leastBudgetOf(bodyLimitBytes: number): number {
  return 2 * memoryPerBodyByte * bodyLimitBytes;
}
