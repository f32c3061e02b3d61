-- `svc.announced_events` is a setting of a session: how many events of each transaction it gets at once, each as a message of level INFO. The relay of
-- its process then need not read them. The last message has no event in it, and means that there may be more. Neither has one of an event
-- that is large, or that the server would write to its log. Only who may read svc.events gets any: a message shows the whole row.
CREATE OR REPLACE FUNCTION svc.enqueue_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  digits text;
  own xid8 := pg_catalog.pg_current_xact_id();
  size integer := pg_catalog.pg_column_size(NEW.snapshot) + coalesce(pg_catalog.pg_column_size(NEW.previous), 0);
  left_over integer := nullif(pg_catalog.current_setting('svc.announced_events', true), '');
BEGIN
  IF NEW.uuid IS NULL THEN
    digits := pg_catalog.lpad(pg_catalog.to_hex(NEW.id), 12, '0');
    NEW.uuid := (pg_catalog.left(digits, 8) || '-' || pg_catalog.substr(digits, 9, 4)
      || pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 14))::pg_catalog.uuid;
  END IF;
  INSERT INTO svc.outbox (event_id, transaction_id, resource, owner_id, writer, bytes)
  VALUES (NEW.id, own::pg_catalog.text::bigint, NEW.resource, NEW.owner_id, pg_catalog.current_setting('application_name'), size);
  IF left_over > 0 AND pg_catalog.has_table_privilege(session_user, TG_RELID, 'SELECT') THEN
    PERFORM pg_catalog.set_config('svc.announced_events', (left_over - 1)::pg_catalog.text, true);
    RAISE INFO USING MESSAGE = 'event', DETAIL = CASE
      WHEN left_over > 1 AND size <= 8192 AND pg_catalog.current_setting('log_min_messages') !~ '^(debug|info)' THEN
        pg_catalog.json_build_object(
          'id', NEW.id::pg_catalog.text, 'uuid', NEW.uuid, 'resource', NEW.resource, 'trigger', NEW.trigger, 'recordId', NEW.record_id,
          'ownerId', NEW.owner_id, 'snapshot', NEW.snapshot, 'previous', NEW.previous, 'traceparent', NEW.traceparent,
          'timestamp', pg_catalog.to_char(NEW.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
          'transaction', own::pg_catalog.text, 'bytes', size)::pg_catalog.text
      ELSE '' END;
  END IF;
  RETURN NEW;
END
$$;
