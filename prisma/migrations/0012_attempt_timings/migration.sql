-- What an attempt was: where it went, how long each part took, and what made it. Null before this release, and where a kept connection
-- was used: it has no look-up, no connecting and no handshake. No column is written into the rows that are there.
ALTER TABLE svc.attempts
  ADD COLUMN address text,
  ADD COLUMN dns_ms integer,
  ADD COLUMN connect_ms integer,
  ADD COLUMN tls_ms integer,
  ADD COLUMN first_byte_ms integer,
  ADD COLUMN trigger text NOT NULL DEFAULT 'scheduled',
  -- NOT VALID: holds for every row written from now on, without reading the others.
  ADD CONSTRAINT attempts_trigger_check CHECK (trigger IN ('scheduled', 'manual', 'replay', 'test')) NOT VALID;
