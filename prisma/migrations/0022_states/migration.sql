-- No state that is half of another, whoever writes it: svc, a version before, or SQL by hand.

-- Nothing of svc leaves such rows; those of others would keep what they belong to from going on. Both by an index.
UPDATE svc.deliveries SET last_error = CASE WHEN attempt > 0 THEN 'unknown' END
WHERE held_at IS NOT NULL AND (last_error IS NOT NULL) <> (attempt > 0);
UPDATE svc.deliveries SET last_error = 'unknown' WHERE problem = 'failed' AND dead_lettered_at IS NULL AND last_error IS NULL;

-- NOT VALID: holds for every row that is written from now on, without reading the others under a lock. VALIDATE CONSTRAINT, by hand, reads
-- them while all goes on. An unknown word is for deliveries_status_check.
ALTER TABLE svc.deliveries
  ADD CONSTRAINT deliveries_attempt_check CHECK (attempt BETWEEN 0 AND max_attempts AND CASE status
    WHEN 'pending' THEN attempt = 0 AND max_attempts > 0
    WHEN 'retrying' THEN attempt > 0 AND attempt < max_attempts
    WHEN 'held' THEN attempt < max_attempts
    WHEN 'delivered' THEN attempt > 0
    ELSE true END) NOT VALID,
  ADD CONSTRAINT deliveries_last_error_check CHECK (CASE status
    WHEN 'pending' THEN last_error IS NULL
    WHEN 'delivered' THEN last_error IS NULL
    WHEN 'held' THEN (last_error IS NOT NULL) = (attempt > 0)
    WHEN 'retrying' THEN last_error IS NOT NULL
    WHEN 'failed' THEN last_error IS NOT NULL
    WHEN 'cancelled' THEN last_error IS NOT NULL
    ELSE true END) NOT VALID,
  ADD CONSTRAINT deliveries_replay_check CHECK (replay_id IS NULL OR trigger_kind = 'manual') NOT VALID;

-- An attempt that a person asked for has a time: it waits for no slot.
ALTER TABLE svc.delivery_queue
  ADD CONSTRAINT delivery_queue_hurried_check CHECK (is_hurried IS NOT TRUE OR due_at IS NOT NULL) NOT VALID;

UPDATE svc.replays SET reason = NULL WHERE reason IS NOT NULL AND state <> 'cancelled';
UPDATE svc.replays SET total = done, is_estimate = false WHERE state = 'done' AND (total <> done OR is_estimate);
ALTER TABLE svc.replays
  ADD CONSTRAINT replays_reason_check CHECK (reason IS NULL OR state = 'cancelled'),
  ADD CONSTRAINT replays_counts_check CHECK (failed >= 0 AND failed <= done AND total >= 0
    AND (state <> 'done' OR (total = done AND NOT is_estimate))) NOT VALID,
  ADD CONSTRAINT replays_holder_check CHECK (held_until IS NULL OR holder IS NOT NULL) NOT VALID;

ALTER TABLE svc.subscriptions
  ADD CONSTRAINT subscriptions_headers_changed_check CHECK (encrypted_headers IS NULL OR headers_changed_at IS NOT NULL) NOT VALID;
