-- Who changed what, from where. Written by triggers and not by the service's statements: a trigger is part of the writer's transaction, so
-- that there is neither a change without its row nor a row without its change, and it sees every writer, `psql` included.
-- The service says on whose behalf it acts in the setting `svc.actor` of the transaction; without it the actor is the database role.
CREATE TABLE svc.audit (
  id bigserial PRIMARY KEY,
  occurred_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  action text NOT NULL,
  actor_kind text NOT NULL,
  actor_id integer,
  actor_name text,
  token_id integer,
  source text,
  request_id text,
  subject_kind text NOT NULL,
  subject_id text,
  details jsonb NOT NULL,
  CONSTRAINT audit_action_check CHECK (action IN (
    'user.created', 'user.updated', 'user.disabled', 'user.enabled', 'user.deleted',
    'token.created', 'token.updated', 'token.revoked', 'token.deleted',
    'webhook.created', 'webhook.updated', 'webhook.secret_replaced', 'webhook.deleted',
    'secret_key.rotated',
    'configuration.loaded', 'configuration.reloaded', 'configuration.refused', 'reload.requested',
    'migration.applied'
  )),
  CONSTRAINT audit_actor_kind_check CHECK (actor_kind IN ('user', 'operator', 'service', 'database')),
  CONSTRAINT audit_subject_kind_check
    CHECK (subject_kind IN ('user', 'token', 'webhook', 'secret_key', 'configuration', 'migration'))
);
CREATE INDEX audit_occurred_at_id_idx ON svc.audit (occurred_at, id);
CREATE INDEX audit_subject_kind_subject_id_id_idx ON svc.audit (subject_kind, subject_id, id);
-- Every start asks for the last of them.
CREATE INDEX audit_configuration_idx ON svc.audit (id)
  WHERE action IN ('configuration.loaded', 'configuration.reloaded', 'configuration.refused');

-- By a trigger and not by rights: the service may own the table, and its owner has every right.
CREATE FUNCTION svc.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'svc.audit only grows: its rows are neither changed nor deleted'
    USING HINT = 'docs/production.md, "Audit trail", says how the owner of the table removes old rows.';
END
$$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON svc.audit
  FOR EACH STATEMENT EXECUTE FUNCTION svc.refuse_audit_change();

-- The one way into the table; gives the row's id. It has the rights of the role that migrates, so that writers need none on svc.audit.
CREATE FUNCTION svc.record_audit(action text, subject_kind text, subject_id text, details jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  actor jsonb := nullif(current_setting('svc.actor', true), '')::jsonb;
  entry bigint;
BEGIN
  actor := coalesce(actor, jsonb_build_object(
    'kind', 'database', 'name', session_user, 'source', host(inet_client_addr())));
  INSERT INTO svc.audit (action, actor_kind, actor_id, actor_name, token_id, source, request_id, subject_kind, subject_id, details)
  VALUES (action, actor ->> 'kind', (actor ->> 'id')::integer, actor ->> 'name', (actor ->> 'tokenId')::integer,
    actor ->> 'source', actor ->> 'requestId', subject_kind, subject_id, details)
  RETURNING id INTO entry;
  RETURN entry;
END
$$;

-- What may be shown of a column. The path of a URL is often the receiver's secret (that of a Slack webhook is), as its query and password
-- may be; a description is free text. That one of them was changed is told all the same.
CREATE FUNCTION svc.audited(name text, value jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN value IS NULL OR value = 'null' THEN 'null'
    WHEN name = 'url' THEN to_jsonb(left(concat(
      substring(value #>> '{}' FROM '^[A-Za-z]+://'),
      substring(value #>> '{}' FROM '^[A-Za-z]+://(?:[^/?#\\]*@)?([^/?#\\@]*)')), 300))
    WHEN name IN ('description', 'secret_hint', 'hash') THEN '"***"'
    ELSE value
  END
$$;

-- Arguments: the kind of the subject, then the columns that are recorded.
CREATE FUNCTION svc.audit_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' AS $$
DECLARE
  kind text := TG_ARGV[0];
  -- Null where there is none.
  old_row jsonb := to_jsonb(OLD);
  new_row jsonb := to_jsonb(NEW);
  before jsonb := '{}';
  after jsonb := '{}';
  name text;
  verb text;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    PERFORM svc.record_audit(kind || '.deleted', kind, NULL, '{"all": true}');
    RETURN NULL;
  END IF;
  FOREACH name IN ARRAY TG_ARGV[1:] LOOP
    IF TG_OP <> 'UPDATE' OR old_row -> name IS DISTINCT FROM new_row -> name THEN
      before := before || jsonb_build_object(name, svc.audited(name, old_row -> name));
      after := after || jsonb_build_object(name, svc.audited(name, new_row -> name));
    END IF;
  END LOOP;
  -- Set to what it was.
  IF after = '{}' THEN
    RETURN NULL;
  END IF;
  verb := CASE
    WHEN TG_OP = 'INSERT' THEN 'created'
    WHEN TG_OP = 'DELETE' THEN 'deleted'
    WHEN after ? 'disabled_at' AND new_row ->> 'disabled_at' IS NULL THEN 'enabled'
    WHEN after ? 'disabled_at' AND old_row ->> 'disabled_at' IS NULL THEN 'disabled'
    WHEN after ? 'revoked_at' AND old_row ->> 'revoked_at' IS NULL THEN 'revoked'
    WHEN after ? 'secret_hint' THEN 'secret_replaced'
    ELSE 'updated'
  END;
  PERFORM svc.record_audit(kind || '.' || verb, kind, coalesce(new_row, old_row) ->> 'id', CASE TG_OP
    WHEN 'INSERT' THEN jsonb_build_object('after', after)
    WHEN 'DELETE' THEN jsonb_build_object('before', before)
    ELSE jsonb_build_object('before', before, 'after', after)
  END);
  RETURN NULL;
END
$$;

-- One row for each statement, not for each of thousands of webhooks. The id of its key stands in the clear in each sealed secret.
CREATE FUNCTION svc.audit_reencryption() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed record;
BEGIN
  SELECT count(*) AS secrets,
    array_agg(DISTINCT encode(substring(was.encrypted_secret FROM 2 FOR 4), 'hex')) AS old_keys,
    array_agg(DISTINCT encode(substring(becomes.encrypted_secret FROM 2 FOR 4), 'hex')) AS new_keys
  INTO changed
  FROM old_rows AS was JOIN new_rows AS becomes USING (id)
  -- Another hint is another secret, which svc.audit_change() records.
  WHERE was.encrypted_secret <> becomes.encrypted_secret AND was.secret_hint = becomes.secret_hint;
  IF changed.secrets > 0 THEN
    PERFORM svc.record_audit('secret_key.rotated', 'secret_key', array_to_string(changed.new_keys, ','),
      jsonb_build_object('secrets', changed.secrets, 'before', changed.old_keys, 'after', changed.new_keys));
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION svc.audit_change(), svc.audit_reencryption() FROM PUBLIC;

-- Of the columns that matter alone: the use of a token is noted every minute (last_used_at), and must cost nothing here.
CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF name, email, is_admin, disabled_at ON svc.users
  FOR EACH ROW EXECUTE FUNCTION svc.audit_change('user', 'name', 'email', 'is_admin', 'disabled_at');
CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF user_id, name, hash, expires_at, revoked_at ON svc.tokens
  FOR EACH ROW EXECUTE FUNCTION svc.audit_change('token', 'user_id', 'name', 'hash', 'expires_at', 'revoked_at');
CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF user_id, url, resource, events, is_active, description, secret_hint
  ON svc.subscriptions FOR EACH ROW EXECUTE FUNCTION
  svc.audit_change('webhook', 'user_id', 'url', 'resource', 'events', 'is_active', 'description', 'secret_hint');
CREATE TRIGGER audit_reencryption AFTER UPDATE ON svc.subscriptions
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION svc.audit_reencryption();

CREATE TRIGGER audit_truncate AFTER TRUNCATE ON svc.users FOR EACH STATEMENT EXECUTE FUNCTION svc.audit_change('user');
CREATE TRIGGER audit_truncate AFTER TRUNCATE ON svc.tokens FOR EACH STATEMENT EXECUTE FUNCTION svc.audit_change('token');
CREATE TRIGGER audit_truncate AFTER TRUNCATE ON svc.subscriptions FOR EACH STATEMENT EXECUTE FUNCTION svc.audit_change('webhook');
