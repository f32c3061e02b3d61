-- Operational events: what happens to webhooks and deliveries, as events of the resource "service".
-- Triggers write them, so that each is in the commit of what it tells of. Nothing about a subscription
-- to "service" makes one, and none is written while no active subscription asks for it.
ALTER TABLE svc.events
  DROP CONSTRAINT events_trigger_check,
  ADD CONSTRAINT events_trigger_check CHECK (trigger IN (
    'on_create', 'on_update', 'on_delete', 'webhook.failing', 'webhook.disabled', 'delivery.failed')) NOT VALID;

CREATE FUNCTION svc.emit_service_event(kind text, id text, details jsonb) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO svc.events (resource, trigger, record_id, snapshot)
  SELECT 'service', kind, id, details
  WHERE EXISTS (SELECT FROM svc.subscriptions WHERE resource = 'service' AND is_active AND kind = ANY(events))
$$;

-- Of a URL, scheme and host alone: the rest is often its password.
CREATE FUNCTION svc.service_event() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  webhook svc.subscriptions;
BEGIN
  CASE TG_TABLE_NAME
    WHEN 'deliveries' THEN
      PERFORM svc.emit_service_event('delivery.failed', NEW.id::text, jsonb_build_object(
        'webhook_id', NEW.subscription_id, 'user_id', NEW.user_id, 'receiver', svc.audited('url', to_jsonb(NEW.url)),
        'resource', NEW.resource, 'delivery_id', NEW.id, 'delivery_uuid', NEW.uuid, 'event_uuid', NEW.event_uuid,
        'attempts', NEW.attempt, 'reason', NEW.last_error));
    WHEN 'subscriptions' THEN
      PERFORM svc.emit_service_event('webhook.disabled', NEW.id::text, jsonb_build_object(
        'webhook_id', NEW.id, 'user_id', NEW.user_id, 'receiver', svc.audited('url', to_jsonb(NEW.url)),
        'resource', NEW.resource, 'reason', NEW.disabled_reason));
    ELSE
      SELECT * INTO webhook FROM svc.subscriptions WHERE id = NEW.subscription_id;
      IF webhook.resource <> 'service' THEN
        PERFORM svc.emit_service_event('webhook.failing', webhook.id::text, jsonb_build_object(
          'webhook_id', webhook.id, 'user_id', webhook.user_id, 'receiver', svc.audited('url', to_jsonb(webhook.url)),
          'resource', webhook.resource, 'failing_since', to_char(NEW.failing_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
      END IF;
  END CASE;
  RETURN NULL;
END
$$;

CREATE TRIGGER service_event AFTER UPDATE OF status ON svc.deliveries FOR EACH ROW
  WHEN (NEW.status = 'failed' AND OLD.status <> 'failed' AND NEW.resource <> 'service')
  EXECUTE FUNCTION svc.service_event();
-- By the service alone: an owner knows what they have done.
CREATE TRIGGER service_event AFTER UPDATE OF is_active ON svc.subscriptions FOR EACH ROW
  WHEN (OLD.is_active AND NEW.disabled_reason IN ('gone', 'failing') AND NEW.resource <> 'service')
  EXECUTE FUNCTION svc.service_event();
CREATE TRIGGER service_event AFTER UPDATE OF failing_told_at ON svc.subscription_state FOR EACH ROW
  WHEN (OLD.failing_told_at IS NULL AND NEW.failing_told_at IS NOT NULL)
  EXECUTE FUNCTION svc.service_event();
