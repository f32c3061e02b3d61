-- The old row of an update, where a mapping file has `previous: true`. Null in every other row, which costs nothing.
ALTER TABLE svc.events ADD COLUMN previous jsonb;
ALTER TABLE svc.event_data ADD COLUMN previous text;
-- Whether the body of a delivery shows it, since its subscriber could read the old row too. Null: no.
ALTER TABLE svc.deliveries ADD COLUMN has_previous boolean;

-- Counts both rows of an event: a relay bounds by it what it reads at once.
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
    pg_catalog.current_setting('application_name'),
    pg_catalog.pg_column_size(NEW.snapshot) + coalesce(pg_catalog.pg_column_size(NEW.previous), 0));
  RETURN NEW;
END
$$;
