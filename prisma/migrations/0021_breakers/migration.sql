-- Receivers that do not answer, for all dispatchers: a user's URL by its SHA-256, since the path of a URL is often a secret.
CREATE TABLE svc.breakers (
  key bytea PRIMARY KEY,
  pause_ms double precision NOT NULL,
  -- Until then, no attempt is made; then one decides.
  until timestamptz(3) NOT NULL,
  -- The process that has written the row.
  holder uuid NOT NULL
);
