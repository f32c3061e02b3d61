-- Pending and retrying deliveries of all users, each without the others before them: a list passed over them one by one, which took 100 to
-- 400 ms for 50,000. Null where an outcome may yet come that changes the status, and where a process of the release before wrote the row:
-- such a row is in both indexes, and the status of the delivery decides. No default, so that no row is written.
ALTER TABLE svc.delivery_queue ADD COLUMN is_retry boolean;
CREATE INDEX delivery_queue_retrying_idx ON svc.delivery_queue ((delivery_id + 0)) WHERE is_retry IS NOT FALSE;
CREATE INDEX delivery_queue_pending_idx ON svc.delivery_queue ((delivery_id + 0)) WHERE is_retry IS NOT TRUE;
