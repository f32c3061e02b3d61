-- What was done to the deliveries of a webhook by hand.
ALTER TABLE svc.audit
  DROP CONSTRAINT audit_action_check,
  ADD CONSTRAINT audit_action_check CHECK (action IN (
    'user.created', 'user.updated', 'user.disabled', 'user.enabled', 'user.deleted',
    'token.created', 'token.updated', 'token.revoked', 'token.deleted',
    'webhook.created', 'webhook.updated', 'webhook.secret_replaced', 'webhook.deleted',
    'webhook.held_discarded', 'webhook.replay_started', 'webhook.replay_paused', 'webhook.replay_resumed', 'webhook.replay_cancelled',
    'secret_key.rotated',
    'configuration.loaded', 'configuration.reloaded', 'configuration.refused', 'reload.requested',
    'migration.applied', 'record.erased'
  )) NOT VALID;

-- Test deliveries, which processes of the API limit together. A row ends by itself when its process dies.
CREATE TABLE svc.tests (
  id uuid PRIMARY KEY,
  subscription_id integer NOT NULL,
  user_id integer NOT NULL,
  started_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  ends_at timestamptz(3) NOT NULL
);
CREATE INDEX tests_user_id_idx ON svc.tests (user_id);
