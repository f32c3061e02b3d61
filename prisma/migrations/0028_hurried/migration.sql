-- An attempt that a person asked for may wait for a slot or its rate too, and is still theirs when it is made.
ALTER TABLE svc.delivery_queue DROP CONSTRAINT delivery_queue_hurried_check;
