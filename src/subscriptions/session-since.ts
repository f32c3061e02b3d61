/**
 * CTE with the time since which the database session is known to exist: the time of its first
 * statement with this CTE. After a crash or a fail-over, the database may assign the same
 * transaction ids again. No session survives either. Data that was read after that time therefore
 * has transaction ids of the session's own run of the database. With PgBouncer, the session is the
 * server connection.
 */
export const sessionCte = `
  session AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
      coalesce(nullif(current_setting('svc.session_since', true), ''),
        set_config('svc.session_since', ((extract(epoch FROM now()) * 1000)::float8)::text, false))::float8 AS since_ms
  )`;

/**
 * Returns the SQL condition that data may have been read before the session. When the clock was set
 * back, the data counts as read since, so that work is not blocked for hours.
 *
 * @param readAtMs The database's time of day in ms since 1970.
 */
export const isBeforeSession = (readAtMs: string): string =>
  `${readAtMs}::float8 <= session.since_ms AND session.since_ms <= session.now_ms`;
