/**
 * The time since which a session of the database is known to exist: that of its first statement
 * with this CTE. After a crash or a fail-over, the database may assign the same transaction ids
 * again. No session survives either. So what was read after that time has ids of the run of the
 * database that the session uses. With PgBouncer, the session is that of the server.
 */
export const sessionCte = `
  session AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
      coalesce(nullif(current_setting('svc.session_since', true), ''),
        set_config('svc.session_since', ((extract(epoch FROM now()) * 1000)::float8)::text, false))::float8 AS since_ms
  )`;

/**
 * Whether something may have been read before the session. A clock that went back must not hold
 * that up for hours: then it counts as read since.
 *
 * @param readAtMs The database's time of day in ms since 1970.
 */
export const isBeforeSession = (readAtMs: string): string =>
  `${readAtMs}::float8 <= session.since_ms AND session.since_ms <= session.now_ms`;
