-- The way from a commit to the receiver, with fewer row versions (docs/architecture.md, "From a commit to the receiver"):
-- what waits is in small queue tables, what people read is in events, deliveries and attempts, and no work reads their history.

-- Nobody may write an event between the copy into the outbox and the trigger that fills it from then on.
LOCK TABLE svc.events, svc.deliveries, svc.attempts IN ACCESS EXCLUSIVE MODE;

-- Events that are not fanned out yet. The fan-out deletes a row in the commit that writes the event's deliveries.
CREATE TABLE svc.outbox (
  event_id bigint PRIMARY KEY,
  -- Top-level transaction of the writer: with snapshots, it tells what has become visible since the last look.
  transaction_id bigint NOT NULL,
  resource text NOT NULL,
  -- application_name of the writer's session: the relay of the process that wrote an event publishes it.
  writer text NOT NULL,
  -- Of the snapshot, before compression.
  bytes integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
CREATE INDEX outbox_resource_transaction_id_event_id_idx ON svc.outbox (resource, transaction_id, event_id);

CREATE FUNCTION svc.enqueue_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes)
  VALUES (NEW.id, pg_catalog.pg_current_xact_id()::pg_catalog.text::bigint, NEW.resource,
    pg_catalog.current_setting('application_name'), pg_catalog.pg_column_size(NEW.snapshot));
  RETURN NEW;
END
$$;
-- BEFORE, since the snapshot is not compressed yet then.
CREATE TRIGGER enqueue_event BEFORE INSERT ON svc.events FOR EACH ROW EXECUTE FUNCTION svc.enqueue_event();

INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes)
SELECT id, pg_current_xact_id()::text::bigint, resource, '', pg_column_size(snapshot || '{}') FROM svc.events WHERE fanned_out_at IS NULL;

DROP INDEX svc.events_unpublished_idx;
DROP INDEX svc.events_stranded_idx;
-- Random UUIDs: each entry is a page of its own to write. Nothing looks an event or a delivery up by its UUID.
DROP INDEX svc.events_uuid_key;
ALTER TABLE svc.events
  DROP COLUMN published_at, DROP COLUMN fanned_out_at, DROP COLUMN claimed_until,
  DROP COLUMN relay_failures, DROP COLUMN relay_error;

-- The record of an event as its resource's transform gave it: the bytes of `data` in every delivery of the event.
-- Only of events that have deliveries.
CREATE TABLE svc.event_data (
  event_id bigint PRIMARY KEY,
  data text NOT NULL
);
-- A body ends in `,"timestamp":"2026-03-28T14:30:00.123456Z"}`: 43 characters.
INSERT INTO svc.event_data (event_id, data)
SELECT event_id, substr(body, strpos(body, ',"data":') + 8, length(body) - 43 - strpos(body, ',"data":') - 7)
FROM (
  SELECT event_id, convert_from(body, 'UTF8') AS body
  FROM (SELECT min(id) AS id FROM svc.deliveries GROUP BY event_id) AS first JOIN svc.deliveries USING (id)
) AS delivery;

-- Deliveries that wait: for their time, or (due_at is null) for a slot at their receiver or for their subscription to be active.
-- A delivery in hand is not here but in svc.flights; one at its end is in neither.
CREATE TABLE svc.delivery_queue (
  delivery_id bigint PRIMARY KEY,
  subscription_id integer NOT NULL,
  user_id integer NOT NULL,
  due_at timestamptz(3)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
CREATE INDEX delivery_queue_subscription_id_delivery_id_idx ON svc.delivery_queue (subscription_id, delivery_id);
CREATE INDEX delivery_queue_user_id_delivery_id_idx ON svc.delivery_queue (user_id, delivery_id);
CREATE INDEX delivery_queue_due_idx ON svc.delivery_queue (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_queue_parked_idx ON svc.delivery_queue (subscription_id, delivery_id) WHERE due_at IS NULL;

INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
SELECT id, subscription_id, user_id, next_attempt_at FROM svc.deliveries WHERE status IN ('pending', 'retrying');

-- Deliveries that a dispatcher has in hand, one row for all that it took at once. When its time is up, what is not finished is due again.
CREATE TABLE svc.flights (
  -- Not counted: a crash of the database gives a number out twice, and a process that has the first flight would end the second.
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  delivery_ids bigint[] NOT NULL,
  ends_at timestamptz(3) NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);

-- The planner must not believe in what an earlier ANALYZE saw of a queue: without statistics, it takes the index that gives the order.
ALTER TABLE svc.outbox
  ALTER COLUMN event_id SET STATISTICS 0, ALTER COLUMN transaction_id SET STATISTICS 0, ALTER COLUMN resource SET STATISTICS 0,
  ALTER COLUMN writer SET STATISTICS 0, ALTER COLUMN bytes SET STATISTICS 0;
ALTER TABLE svc.delivery_queue
  ALTER COLUMN delivery_id SET STATISTICS 0, ALTER COLUMN subscription_id SET STATISTICS 0, ALTER COLUMN user_id SET STATISTICS 0,
  ALTER COLUMN due_at SET STATISTICS 0;
ALTER TABLE svc.flights ALTER COLUMN ends_at SET STATISTICS 0;

-- No foreign keys to what is written in the same statement or one before: each takes a lock and writes it into the row it points to.
ALTER TABLE svc.deliveries DROP CONSTRAINT deliveries_event_id_fkey;
DROP INDEX svc.deliveries_uuid_key;
DROP INDEX svc.deliveries_event_id_idx;
DROP INDEX svc.deliveries_root_delivery_id_idx;
DROP INDEX svc.deliveries_automatic_key;
DROP INDEX svc.deliveries_due_idx;
DROP INDEX svc.deliveries_undead_lettered_idx;
-- `problem` changes only for a delivery that fails or is cancelled. No index looks at `status`, so that an attempt that is answered
-- well is a HOT update: it writes into no index.
ALTER TABLE svc.deliveries
  DROP COLUMN body, DROP COLUMN next_attempt_at, DROP COLUMN queued_until, DROP COLUMN leased_until,
  ADD COLUMN problem text GENERATED ALWAYS AS (CASE WHEN status IN ('failed', 'cancelled') THEN status END) STORED;
-- Room on its page for the second version of every row: those of one page are often answered at once, in one commit. At 70, 57 % of the
-- updates were HOT; at 50 all are, with 14 % less WAL a delivery, and the table is 9 % larger.
ALTER TABLE svc.deliveries SET (fillfactor = 50);
-- One for each subscription, and any number of manual ones. It serves the filter `event_id` too.
CREATE UNIQUE INDEX deliveries_event_key
  ON svc.deliveries (event_id, subscription_id, (CASE trigger_kind WHEN 'automatic' THEN 0 ELSE id END));
CREATE INDEX deliveries_manual_idx ON svc.deliveries (root_delivery_id) WHERE trigger_kind = 'manual';
CREATE INDEX deliveries_problem_idx ON svc.deliveries (problem, id) WHERE problem IS NOT NULL;
CREATE INDEX deliveries_user_problem_idx ON svc.deliveries (user_id, problem, id) WHERE problem IS NOT NULL;
CREATE INDEX deliveries_subscription_problem_idx ON svc.deliveries (subscription_id, problem, id) WHERE problem IS NOT NULL;
CREATE INDEX deliveries_undead_lettered_idx ON svc.deliveries (id) WHERE problem = 'failed' AND dead_lettered_at IS NULL;

ALTER TABLE svc.attempts DROP CONSTRAINT attempts_delivery_id_fkey;
DROP INDEX svc.attempts_delivery_id_number_key;
ALTER TABLE svc.attempts DROP CONSTRAINT attempts_pkey, DROP COLUMN id, ADD PRIMARY KEY (delivery_id, number);

-- The relays at work, so that each knows which events of other writers are its own to publish.
CREATE TABLE svc.relays (
  name text PRIMARY KEY,
  seen_at timestamptz(3) NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
