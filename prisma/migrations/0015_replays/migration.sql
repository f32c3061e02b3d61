-- Replays: jobs that make the deliveries of a time again, in portions, until their cursor is at the end.
CREATE TABLE svc.replays (
  id bigserial PRIMARY KEY,
  subscription_id integer NOT NULL,
  user_id integer NOT NULL,
  asked jsonb NOT NULL,
  state text NOT NULL DEFAULT 'running',
  reason text,
  -- Id of the last event that was looked at, and of the last one to look at.
  cursor bigint NOT NULL,
  until_id bigint NOT NULL,
  total bigint NOT NULL,
  is_estimate boolean NOT NULL,
  done bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  -- The process that works on it; another one may when the time is up.
  holder uuid,
  held_until timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT replays_state_check CHECK (state IN ('running', 'paused', 'done', 'cancelled'))
);
CREATE UNIQUE INDEX replays_active_idx ON svc.replays (subscription_id) WHERE state IN ('running', 'paused');
CREATE INDEX replays_subscription_id_idx ON svc.replays (subscription_id);

-- The replay that made a delivery.
ALTER TABLE svc.deliveries ADD COLUMN replay_id bigint;
