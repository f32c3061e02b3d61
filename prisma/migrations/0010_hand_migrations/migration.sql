-- The migrations by hand (config/migrations) that were applied here. The checksum tells a file that was changed afterwards.
CREATE TABLE svc.hand_migrations (
  name text PRIMARY KEY,
  checksum text NOT NULL,
  applied_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
