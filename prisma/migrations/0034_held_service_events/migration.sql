-- A webhook that is off gets its operational events as held deliveries, like those of every other resource.
CREATE OR REPLACE FUNCTION svc.emit_service_event(kind text, id text, details jsonb) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO svc.events (resource, trigger, record_id, snapshot)
  SELECT 'service', kind, id, details
  WHERE EXISTS (SELECT FROM svc.subscriptions WHERE resource = 'service' AND kind = ANY(events))
$$;
