-- Whose an event is: relays share out what they read by owners. Null where the record has no owner, and in rows from before.
ALTER TABLE svc.outbox ADD COLUMN owner_id text;
ALTER TABLE svc.outbox ALTER COLUMN owner_id SET STATISTICS 0;

CREATE OR REPLACE FUNCTION svc.enqueue_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  digits text;
BEGIN
  IF NEW.uuid IS NULL THEN
    digits := pg_catalog.lpad(pg_catalog.to_hex(NEW.id), 12, '0');
    NEW.uuid := (pg_catalog.left(digits, 8) || '-' || pg_catalog.substr(digits, 9, 4)
      || pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 14))::pg_catalog.uuid;
  END IF;
  INSERT INTO svc.outbox (event_id, transaction_id, resource, owner_id, writer, bytes)
  VALUES (NEW.id, pg_catalog.pg_current_xact_id()::pg_catalog.text::bigint, NEW.resource, NEW.owner_id,
    pg_catalog.current_setting('application_name'),
    pg_catalog.pg_column_size(NEW.snapshot) + coalesce(pg_catalog.pg_column_size(NEW.previous), 0));
  RETURN NEW;
END
$$;
