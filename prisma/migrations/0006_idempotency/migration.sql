-- The first answers to POSTs with an Idempotency-Key, each written in the transaction of what it
-- answers, for 24 h.
CREATE TABLE svc.idempotency_keys (
  -- No foreign key: it would lock the user's row in every such request.
  user_id integer NOT NULL,
  -- SHA-256 of the key.
  key_hash bytea NOT NULL,
  -- SHA-256 of method, path and body.
  request_hash bytea NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  -- JSON, or that encrypted with the secret key where it shows a webhook's secret.
  body bytea NOT NULL,
  is_sealed boolean NOT NULL,
  -- Length of the body, for the index that counts what is kept of a user.
  bytes integer NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL,
  PRIMARY KEY (user_id, key_hash)
-- A day's answers go within a day: dead rows are worth a vacuum long before they are a fifth of the
-- table.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX idempotency_keys_expires_at_idx ON svc.idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_user_id_bytes_idx ON svc.idempotency_keys (user_id, bytes);
