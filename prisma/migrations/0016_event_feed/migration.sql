-- Events that can be listed, and looked up by their UUID and by their record.

-- A UUID is found without an index of random values, each entry of which is a page of its own to write: its first 48 bits are the event's id.
-- 74 random bits are left, and the form is that of version 4.
ALTER TABLE svc.events ALTER COLUMN uuid DROP DEFAULT;
CREATE OR REPLACE FUNCTION svc.enqueue_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  digits text;
BEGIN
  IF NEW.uuid IS NULL THEN
    digits := pg_catalog.lpad(pg_catalog.to_hex(NEW.id), 12, '0');
    NEW.uuid := (pg_catalog.left(digits, 8) || '-' || pg_catalog.substr(digits, 9, 4)
      || pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 14))::pg_catalog.uuid;
  END IF;
  INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes)
  VALUES (NEW.id, pg_catalog.pg_current_xact_id()::pg_catalog.text::bigint, NEW.resource,
    pg_catalog.current_setting('application_name'), pg_catalog.pg_column_size(NEW.snapshot));
  RETURN NEW;
END
$$;

-- What happened to one record, in its order. On 2 million events this index takes some 4 s to make, while writers of captured tables wait.
CREATE INDEX events_resource_record_id_id_idx ON svc.events (resource, record_id, id);

-- The events that are there have random UUIDs: an index of them alone, which no new event is written into.
DO $$
DECLARE
  last bigint := (SELECT max(id) FROM svc.events);
BEGIN
  IF last IS NOT NULL THEN
    EXECUTE format('CREATE INDEX events_uuid_before_idx ON svc.events (uuid) WHERE id <= %s', last);
  END IF;
END
$$;
