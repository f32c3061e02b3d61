/** SQL of the other columns of a delivery with a status, as the CHECK constraints require. */
interface StateSql {
  readonly attempt: string;
  readonly lastError: string;
  /** SET clause of an UPDATE, with the status. */
  readonly set: string;
}

/** @param status SQL of a status: `'failed'`, or `$1::text`. */
export function stateSql(status: string): StateSql {
  const attempt = `CASE WHEN ${status} IN ('retrying', 'delivered') THEN 1 ELSE 0 END`;
  const lastError = `CASE WHEN ${status} IN ('retrying', 'failed', 'cancelled') THEN 'refused' END`;
  return { attempt, lastError, set: `status = ${status}, attempt = ${attempt}, last_error = ${lastError}` };
}
