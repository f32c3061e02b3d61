-- Written by hand from ../../schema.prisma; test/db/migrate.test.ts holds the two equal.
-- What Prisma cannot express (checks, partial indexes) is at the end of each table.

-- Not CREATE SCHEMA IF NOT EXISTS: that asks for the right to create schemas even where an administrator has made this one.
DO $$
BEGIN
  IF to_regnamespace('svc') IS NULL THEN
    CREATE SCHEMA svc;
  END IF;
END
$$;

CREATE TABLE svc.migrations (
  name text PRIMARY KEY,
  checksum text NOT NULL,
  applied_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE svc.installed_resources (
  name text PRIMARY KEY,
  "table" text NOT NULL,
  is_managed boolean NOT NULL,
  hash text NOT NULL,
  installed_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE svc.users (
  id serial PRIMARY KEY,
  name text NOT NULL,
  email text NOT NULL,
  is_admin boolean NOT NULL DEFAULT false,
  disabled_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX users_email_key ON svc.users (email);

CREATE TABLE svc.tokens (
  id serial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES svc.users (id) ON UPDATE CASCADE ON DELETE CASCADE,
  name text NOT NULL,
  hash bytea NOT NULL,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX tokens_hash_key ON svc.tokens (hash);
CREATE INDEX tokens_user_id_idx ON svc.tokens (user_id);

CREATE TABLE svc.subscriptions (
  id serial PRIMARY KEY,
  user_id integer NOT NULL REFERENCES svc.users (id) ON UPDATE CASCADE ON DELETE CASCADE,
  url text NOT NULL,
  resource text NOT NULL,
  events text[] NOT NULL,
  is_active boolean NOT NULL DEFAULT true,
  description text,
  encrypted_secret bytea NOT NULL,
  secret_hint char(4) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT subscriptions_events_check
    CHECK (cardinality(events) > 0 AND events <@ ARRAY['on_create', 'on_update', 'on_delete'])
);
CREATE INDEX subscriptions_user_id_idx ON svc.subscriptions (user_id);
CREATE INDEX subscriptions_resource_is_active_idx ON svc.subscriptions (resource, is_active);

-- The W3C traceparent in a comment at the end of the client's statement, in the form of sqlcommenter; null without one. Costs 1 to 10 us.
-- current_query() copies the whole statement, and right() walks over it: done for each row of a statement with 10,000 rows (900 kB) it
-- took 26 s instead of 0.2 s. So it is done once per statement, which statement_timestamp() tells apart, and kept in a setting of the transaction.
-- (PGlite's clock ticks in milliseconds: of two statements of one transaction within the same one, the second takes what the first has.)
CREATE FUNCTION svc.statement_traceparent() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  statement text := pg_catalog.statement_timestamp()::pg_catalog.text;
  known text := pg_catalog.current_setting('svc.statement', true);
  tail text;
  given text;
BEGIN
  IF pg_catalog.left(known, pg_catalog.length(statement)) = statement THEN
    RETURN nullif(pg_catalog.substr(known, pg_catalog.length(statement) + 1), '');
  END IF;
  tail := pg_catalog.rtrim(pg_catalog.right(pg_catalog.current_query(), 1000), E' ;\n\r\t');
  IF pg_catalog.right(tail, 2) = '*/' THEN
    tail := pg_catalog.split_part(tail, '/*', -1);
    given := pg_catalog.substr(tail, pg_catalog.strpos(tail, 'traceparent=''') + 13, 56);
    -- One expression with the search for it took 30 us more.
    given := CASE WHEN given ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}''$' THEN pg_catalog.left(given, 55) END;
  END IF;
  PERFORM pg_catalog.set_config('svc.statement', pg_catalog.concat(statement, given), true);
  RETURN given;
END
$$;

CREATE TABLE svc.events (
  id bigserial PRIMARY KEY,
  uuid uuid NOT NULL DEFAULT gen_random_uuid(),
  resource text NOT NULL,
  trigger text NOT NULL,
  record_id text NOT NULL,
  owner_id text,
  snapshot jsonb NOT NULL,
  occurred_at timestamptz(6) NOT NULL DEFAULT clock_timestamp(),
  published_at timestamptz(3),
  fanned_out_at timestamptz(3),
  claimed_until timestamptz(3),
  relay_failures integer NOT NULL DEFAULT 0,
  relay_error text,
  traceparent text DEFAULT svc.statement_traceparent(),
  CONSTRAINT events_trigger_check CHECK (trigger IN ('on_create', 'on_update', 'on_delete'))
);
CREATE UNIQUE INDEX events_uuid_key ON svc.events (uuid);
-- Both are as small as the backlog, however many events are kept.
CREATE INDEX events_unpublished_idx ON svc.events (id) WHERE published_at IS NULL;
CREATE INDEX events_stranded_idx ON svc.events (claimed_until)
  WHERE published_at IS NOT NULL AND fanned_out_at IS NULL;

CREATE TABLE svc.deliveries (
  id bigserial PRIMARY KEY,
  uuid uuid NOT NULL,
  event_id bigint NOT NULL REFERENCES svc.events (id) ON UPDATE CASCADE ON DELETE RESTRICT,
  event_uuid uuid NOT NULL,
  subscription_id integer NOT NULL,
  user_id integer NOT NULL,
  resource text NOT NULL,
  parent_delivery_id bigint,
  root_delivery_id bigint NOT NULL,
  trigger_kind text NOT NULL,
  status text NOT NULL DEFAULT 'pending',
  attempt integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  url text NOT NULL,
  body bytea NOT NULL,
  next_attempt_at timestamptz(3),
  queued_until timestamptz(3),
  leased_until timestamptz(6),
  last_error text,
  dead_lettered_at timestamptz(3),
  traceparent text,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT deliveries_status_check
    CHECK (status IN ('pending', 'retrying', 'delivered', 'failed', 'cancelled')),
  CONSTRAINT deliveries_trigger_kind_check CHECK (trigger_kind IN ('automatic', 'manual'))
-- Room for the lease on the row's own page: it changes no indexed column, and so costs no index entry (a fifth of the WAL, measured).
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX deliveries_uuid_key ON svc.deliveries (uuid);
CREATE INDEX deliveries_user_id_id_idx ON svc.deliveries (user_id, id);
CREATE INDEX deliveries_subscription_id_id_idx ON svc.deliveries (subscription_id, id);
CREATE INDEX deliveries_event_id_idx ON svc.deliveries (event_id);
CREATE INDEX deliveries_root_delivery_id_idx ON svc.deliveries (root_delivery_id);
-- An event that arrives twice makes one delivery for each subscription.
CREATE UNIQUE INDEX deliveries_automatic_key ON svc.deliveries (event_id, subscription_id)
  WHERE trigger_kind = 'automatic';
CREATE INDEX deliveries_due_idx ON svc.deliveries (next_attempt_at) WHERE status IN ('pending', 'retrying');
CREATE INDEX deliveries_undead_lettered_idx ON svc.deliveries (id)
  WHERE status = 'failed' AND dead_lettered_at IS NULL;

CREATE TABLE svc.attempts (
  id bigserial PRIMARY KEY,
  delivery_id bigint NOT NULL REFERENCES svc.deliveries (id) ON UPDATE CASCADE ON DELETE CASCADE,
  number integer NOT NULL,
  started_at timestamptz(3) NOT NULL,
  duration_ms integer NOT NULL,
  status_code integer,
  error text,
  response_headers jsonb,
  response_body bytea,
  response_truncated boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX attempts_delivery_id_number_key ON svc.attempts (delivery_id, number);

CREATE TABLE svc.processes (
  id uuid PRIMARY KEY,
  program text NOT NULL,
  host text NOT NULL,
  pid integer NOT NULL,
  started_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  seen_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  configuration text NOT NULL,
  loaded_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  reloads_asked integer NOT NULL DEFAULT 0,
  reloads_answered integer NOT NULL DEFAULT 0,
  reload_faults text[] NOT NULL
-- A row is written every few seconds: room for that on its own page.
) WITH (fillfactor = 50);
