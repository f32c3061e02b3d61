-- Events whose payload an operator has erased: their rows stay, with `null` for the snapshot, which no capture writes.
-- NOT VALID: holds for every row that is written from now on, without reading the others.
ALTER TABLE svc.events ADD CONSTRAINT events_snapshot_check CHECK (jsonb_typeof(snapshot) IN ('object', 'null')) NOT VALID;

ALTER TABLE svc.audit
  DROP CONSTRAINT audit_action_check,
  DROP CONSTRAINT audit_subject_kind_check,
  ADD CONSTRAINT audit_action_check CHECK (action IN (
    'user.created', 'user.updated', 'user.disabled', 'user.enabled', 'user.deleted',
    'token.created', 'token.updated', 'token.revoked', 'token.deleted',
    'webhook.created', 'webhook.updated', 'webhook.secret_replaced', 'webhook.deleted',
    'secret_key.rotated',
    'configuration.loaded', 'configuration.reloaded', 'configuration.refused', 'reload.requested',
    'migration.applied', 'record.erased'
  )) NOT VALID,
  ADD CONSTRAINT audit_subject_kind_check
    CHECK (subject_kind IN ('user', 'token', 'webhook', 'secret_key', 'configuration', 'migration', 'record')) NOT VALID;
