-- Deliveries that wait for their subscription to be switched on again, attempts that a person hurries, and replays.

-- An attempt that a person asked for, of a delivery that is on its schedule.
ALTER TABLE svc.delivery_queue ADD COLUMN is_hurried boolean;

-- NOT VALID: holds for every row that is written from now on, without reading the others.
ALTER TABLE svc.deliveries
  ADD COLUMN held_at timestamptz(3),
  ADD COLUMN replay_id bigint,
  DROP CONSTRAINT deliveries_status_check,
  DROP CONSTRAINT deliveries_trigger_kind_check,
  ADD CONSTRAINT deliveries_status_check
    CHECK (status IN ('pending', 'retrying', 'held', 'delivered', 'failed', 'cancelled')) NOT VALID,
  ADD CONSTRAINT deliveries_held_check CHECK ((status = 'held') = (held_at IS NOT NULL)) NOT VALID,
  ADD CONSTRAINT deliveries_trigger_kind_check CHECK (trigger_kind IN ('automatic', 'manual', 'replay')
    AND (trigger_kind = 'replay') = (replay_id IS NOT NULL)
    AND (trigger_kind = 'automatic') <= (parent_delivery_id IS NULL)) NOT VALID,
  ADD CONSTRAINT deliveries_dead_lettered_check CHECK (dead_lettered_at IS NULL OR status = 'failed') NOT VALID;

-- Empty while no subscription is off. The first gives the order in which held ones go out.
CREATE INDEX deliveries_held_idx ON svc.deliveries (subscription_id, event_id, id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_list_idx ON svc.deliveries (id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_user_idx ON svc.deliveries (user_id, id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_subscription_idx ON svc.deliveries (subscription_id, id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_replay_failed_idx ON svc.deliveries (replay_id) WHERE problem = 'failed' AND replay_id IS NOT NULL;

-- What is held of a subscription up to a delivery, and is to be dropped: dispatchers do it in portions.
CREATE TABLE svc.discards (
  subscription_id integer PRIMARY KEY,
  up_to bigint NOT NULL,
  asked_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Which dispatcher sends what was held of a subscription: one at a time, so that it goes out in order.
CREATE TABLE svc.lanes (
  subscription_id integer PRIMARY KEY,
  holder uuid NOT NULL,
  held_until timestamptz(3) NOT NULL
);

-- Deliveries that are made once more: dispatchers go through the events in portions, one of them at a time.
CREATE TABLE svc.replays (
  id bigserial PRIMARY KEY,
  -- No foreign keys: a replay outlives its subscription.
  subscription_id integer NOT NULL,
  user_id integer NOT NULL,
  since timestamptz(6) NOT NULL,
  until timestamptz(6) NOT NULL,
  statuses text[] NOT NULL,
  events text[] NOT NULL,
  resource text,
  state text NOT NULL DEFAULT 'running',
  reason text,
  -- Null while they are not counted.
  total integer,
  done integer NOT NULL DEFAULT 0,
  -- Events and deliveries up to these are looked at; those after `up_to` are younger than the replay.
  position bigint NOT NULL DEFAULT 0,
  up_to bigint NOT NULL,
  holder uuid,
  held_until timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  ended_at timestamptz(3),
  CONSTRAINT replays_state_check CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
  CONSTRAINT replays_ended_check CHECK ((state IN ('done', 'cancelled')) = (ended_at IS NOT NULL)),
  CONSTRAINT replays_holder_check CHECK ((holder IS NULL) = (held_until IS NULL) AND (holder IS NULL OR state = 'running')),
  CONSTRAINT replays_asked_check CHECK (since < until AND cardinality(events) > 0 AND cardinality(statuses) > 0
    AND statuses <@ ARRAY['failed', 'delivered', 'cancelled', 'never']),
  CONSTRAINT replays_count_check CHECK (done >= 0 AND position >= 0 AND total >= 0)
);
CREATE UNIQUE INDEX replays_active_key ON svc.replays (subscription_id) WHERE state IN ('running', 'paused');
CREATE INDEX replays_active_user_idx ON svc.replays (user_id) WHERE state IN ('running', 'paused');

-- Whether any subscription is off, and since when.
CREATE INDEX subscriptions_off_idx ON svc.subscriptions (disabled_at) WHERE NOT is_active;
