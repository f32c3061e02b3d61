-- The subscriptions of users who are disabled get held deliveries: the fan-out finds these users, and since when they are.
CREATE INDEX users_disabled_idx ON svc.users (disabled_at) WHERE disabled_at IS NOT NULL;
