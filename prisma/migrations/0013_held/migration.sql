-- Deliveries that wait for their subscription to be switched on again, and attempts that a person hurries.

-- An attempt that a person asked for, of a delivery that is on its schedule.
ALTER TABLE svc.delivery_queue ADD COLUMN is_hurried boolean;

-- NOT VALID: holds for every row that is written from now on, without reading the others.
ALTER TABLE svc.deliveries
  ADD COLUMN held_at timestamptz(3),
  DROP CONSTRAINT deliveries_status_check,
  DROP CONSTRAINT deliveries_trigger_kind_check,
  ADD CONSTRAINT deliveries_status_check
    CHECK (status IN ('pending', 'retrying', 'held', 'delivered', 'failed', 'cancelled')) NOT VALID,
  ADD CONSTRAINT deliveries_held_check CHECK ((status = 'held') = (held_at IS NOT NULL)) NOT VALID,
  ADD CONSTRAINT deliveries_trigger_kind_check CHECK (trigger_kind IN ('automatic', 'manual')
    AND (trigger_kind = 'automatic') <= (parent_delivery_id IS NULL)) NOT VALID,
  ADD CONSTRAINT deliveries_dead_lettered_check CHECK (dead_lettered_at IS NULL OR status = 'failed') NOT VALID;

-- Empty while no subscription is off. The first gives the order in which held ones go out.
CREATE INDEX deliveries_held_idx ON svc.deliveries (subscription_id, event_id, id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_list_idx ON svc.deliveries (id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_user_idx ON svc.deliveries (user_id, id) WHERE held_at IS NOT NULL;
CREATE INDEX deliveries_held_subscription_idx ON svc.deliveries (subscription_id, id) WHERE held_at IS NOT NULL;

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

-- Whether any subscription is off, and since when.
CREATE INDEX subscriptions_off_idx ON svc.subscriptions (disabled_at) WHERE NOT is_active;
