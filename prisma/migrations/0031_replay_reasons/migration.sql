-- A running replay says why it does not go on.
ALTER TABLE svc.replays
  DROP CONSTRAINT replays_reason_check,
  ADD CONSTRAINT replays_reason_check CHECK (reason IS NULL OR state IN ('running', 'cancelled')) NOT VALID;
