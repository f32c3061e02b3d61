-- Sums for GET /stats, by minute and by hour. Dispatchers add to them every few seconds.
CREATE TABLE svc.figures (
  -- 0: of all users.
  user_id integer NOT NULL,
  width text NOT NULL,
  since timestamptz(0) NOT NULL,
  changes integer NOT NULL,
  deliveries integer NOT NULL,
  failures integer NOT NULL,
  CONSTRAINT figures_pkey PRIMARY KEY (user_id, width, since),
  CONSTRAINT figures_width_check CHECK (width IN ('minute', 'hour'))
-- Room for the next version of a row on its own page: no index changes then.
) WITH (fillfactor = 50);
CREATE INDEX figures_width_since_idx ON svc.figures (width, since);

CREATE INDEX subscription_state_failing_idx ON svc.subscription_state (failing_since) WHERE failing_since IS NOT NULL;

-- Null: a version before this migration.
ALTER TABLE svc.processes ADD COLUMN version text;
