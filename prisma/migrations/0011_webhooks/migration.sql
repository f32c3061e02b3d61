-- Subscriptions that say what they want, carry headers and secrets of their own, and show how their
-- receiver does.
ALTER TABLE svc.subscriptions
  ADD COLUMN filter jsonb,
  -- JSON of the receiver's own headers, sealed like the secret; the names alone are in the clear.
  ADD COLUMN encrypted_headers bytea,
  ADD COLUMN header_names text[] NOT NULL DEFAULT ARRAY[]::text[],
  ADD COLUMN headers_changed_at timestamptz(3),
  -- Attempts a second.
  ADD COLUMN rate_limit double precision,
  -- JSON of the secrets before this one, newest first, with the time until which each still signs.
  ADD COLUMN encrypted_previous bytea,
  ADD COLUMN previous_until timestamptz(3),
  ADD COLUMN disabled_at timestamptz(3),
  ADD COLUMN disabled_reason text;

UPDATE svc.subscriptions SET disabled_at = updated_at, disabled_reason = 'owner' WHERE NOT is_active;

ALTER TABLE svc.subscriptions
  DROP CONSTRAINT subscriptions_events_check,
  ADD CONSTRAINT subscriptions_events_check CHECK (cardinality(events) > 0 AND events <@ ARRAY[
    'on_create', 'on_update', 'on_delete', 'webhook.failing', 'webhook.disabled', 'delivery.failed']),
  ADD CONSTRAINT subscriptions_disabled_check CHECK (
    is_active = (disabled_at IS NULL) AND is_active = (disabled_reason IS NULL)
    AND disabled_reason IN ('owner', 'gone', 'failing')),
  ADD CONSTRAINT subscriptions_headers_check CHECK (
    (encrypted_headers IS NULL) = (cardinality(header_names) = 0) AND cardinality(header_names) <= 10),
  ADD CONSTRAINT subscriptions_rate_limit_check CHECK (rate_limit BETWEEN 0.1 AND 1000),
  ADD CONSTRAINT subscriptions_previous_check CHECK ((encrypted_previous IS NULL) = (previous_until IS NULL));

-- Completes what a process of the version before, or SQL by hand, writes of a state: no state is
-- ever half of another.
CREATE FUNCTION svc.complete_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.is_active THEN
    NEW.disabled_at := NULL;
    NEW.disabled_reason := NULL;
  ELSE
    NEW.disabled_at := coalesce(NEW.disabled_at, now());
    NEW.disabled_reason := coalesce(NEW.disabled_reason, 'owner');
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER complete_state BEFORE INSERT OR UPDATE OF is_active, disabled_at, disabled_reason ON svc.subscriptions
  FOR EACH ROW EXECUTE FUNCTION svc.complete_subscription();

-- What attempts change of a subscription. In a table of its own: the row that each fan-out reads
-- keeps its one version, and the audit trail has no business with it. Each subscription has a row.
CREATE TABLE svc.subscription_state (
  subscription_id integer PRIMARY KEY,
  last_attempt_at timestamptz(3),
  last_success_at timestamptz(3),
  failing_since timestamptz(3),
  -- When `webhook.failing` told of this failing.
  failing_told_at timestamptz(3),
  -- Of a rate limit: when the next attempt may begin, as far as it is given out.
  next_slot_at timestamptz(6),
  CONSTRAINT subscription_state_failing_check CHECK (
    (failing_since IS NULL OR last_success_at IS NULL OR failing_since > last_success_at)
    AND (failing_told_at IS NULL OR failing_since IS NOT NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
INSERT INTO svc.subscription_state (subscription_id) SELECT id FROM svc.subscriptions;

-- No foreign key: it would lock the subscription's row, and a truncation of the one would need the
-- other.
CREATE FUNCTION svc.keep_subscription_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE TG_OP
    WHEN 'INSERT' THEN
      INSERT INTO svc.subscription_state (subscription_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    WHEN 'DELETE' THEN
      DELETE FROM svc.subscription_state WHERE subscription_id = OLD.id;
    ELSE
      -- Another receiver, or another try: its failing begins anew.
      UPDATE svc.subscription_state SET failing_since = NULL, failing_told_at = NULL
      WHERE subscription_id = NEW.id AND failing_since IS NOT NULL;
  END CASE;
  RETURN NULL;
END
$$;
CREATE TRIGGER keep_state AFTER INSERT OR DELETE ON svc.subscriptions
  FOR EACH ROW EXECUTE FUNCTION svc.keep_subscription_state();
CREATE TRIGGER renew_state AFTER UPDATE OF url, is_active ON svc.subscriptions
  FOR EACH ROW WHEN (OLD.url <> NEW.url OR (NEW.is_active AND NOT OLD.is_active))
  EXECUTE FUNCTION svc.keep_subscription_state();

-- A filter may hold what records hold.
CREATE OR REPLACE FUNCTION svc.audited(name text, value jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN value IS NULL OR value = 'null' THEN 'null'
    WHEN name = 'url' THEN to_jsonb(left(concat(
      substring(value #>> '{}' FROM '^[A-Za-z]+://'),
      substring(value #>> '{}' FROM '^[A-Za-z]+://(?:[^/?#\\]*@)?([^/?#\\@]*)')), 300))
    WHEN name IN ('description', 'secret_hint', 'hash', 'filter') THEN '"***"'
    ELSE value
  END
$$;

DROP TRIGGER audit_change ON svc.subscriptions;
CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF
  user_id, url, resource, events, is_active, description, secret_hint, filter, header_names, headers_changed_at, rate_limit, previous_until, disabled_reason
  ON svc.subscriptions FOR EACH ROW EXECUTE FUNCTION
  svc.audit_change('webhook', 'user_id', 'url', 'resource', 'events', 'is_active', 'description', 'secret_hint', 'filter', 'header_names',
    'headers_changed_at', 'rate_limit', 'previous_until', 'disabled_reason');

-- The function of 0005, with what an attempt needs now, and with the subscriptions to every resource
-- ("*"), which the operational events of the resource "service" do not go to.
DROP FUNCTION svc.possible_subscribers(text[], text[], text[], integer[], text[]);
CREATE FUNCTION svc.possible_subscribers(resources text[], triggers text[], kinds text[], user_ids integer[], emails text[])
RETURNS TABLE (
  subscription_id integer, resource text, events text[], url text, encrypted_secret bytea,
  user_id integer, name text, email text, is_admin boolean,
  filter text, encrypted_headers bytea, encrypted_previous bytea, rate_limit double precision
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT given.*, CASE given.resource WHEN 'service' THEN ARRAY['service'] ELSE ARRAY[given.resource, '*'] END AS names
    FROM unnest(resources, triggers, kinds, user_ids, emails) AS given (resource, trigger, kind, user_id, email)
  ), reader AS (
    SELECT asked.names, asked.trigger, asked.user_id FROM asked WHERE asked.kind = 'owner'
    UNION
    SELECT asked.names, asked.trigger, admin.id
    FROM asked CROSS JOIN (SELECT id FROM svc.users WHERE is_admin OFFSET 0) AS admin
    WHERE asked.kind = 'flag'
    UNION
    SELECT asked.names, asked.trigger, admin.id
    FROM asked CROSS JOIN LATERAL (SELECT id FROM svc.users WHERE lower(email) = asked.email OFFSET 0) AS admin
    WHERE asked.kind = 'email'
  ), found AS (
    SELECT theirs.id
    FROM reader CROSS JOIN LATERAL (
      SELECT id FROM svc.subscriptions AS subscription
      WHERE subscription.resource = ANY(reader.names) AND subscription.user_id = reader.user_id
        AND is_active AND reader.trigger = ANY(events)
      OFFSET 0
    ) AS theirs
    UNION
    SELECT anybodys.id
    FROM asked CROSS JOIN LATERAL (
      SELECT id FROM svc.subscriptions AS subscription
      WHERE subscription.resource = ANY(asked.names) AND is_active AND asked.trigger = ANY(events)
      OFFSET 0
    ) AS anybodys
    WHERE asked.kind = 'everybody'
  )
  SELECT subscription.id, subscription.resource, subscription.events, subscription.url, subscription.encrypted_secret,
    subscriber.id, subscriber.name, subscriber.email, subscriber.is_admin,
    subscription.filter::text, subscription.encrypted_headers,
    CASE WHEN subscription.previous_until > now() THEN subscription.encrypted_previous END, subscription.rate_limit
  FROM found
  CROSS JOIN LATERAL (SELECT * FROM svc.subscriptions WHERE id = found.id OFFSET 0) AS subscription
  CROSS JOIN LATERAL (
    SELECT * FROM svc.users WHERE id = subscription.user_id AND disabled_at IS NULL OFFSET 0
  ) AS subscriber
  ORDER BY 1;
END
$$;
