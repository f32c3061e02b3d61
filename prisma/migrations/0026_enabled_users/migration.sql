-- A user who is enabled again begins as a subscription that is switched on again does: the receivers get another try. In the order of the
-- dispatchers, which lock many of these rows in one statement.
CREATE FUNCTION svc.renew_user_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE svc.subscription_state SET failing_since = NULL, failing_told_at = NULL
  WHERE subscription_id = ANY(ARRAY(
    SELECT state.subscription_id FROM svc.subscription_state AS state
    WHERE state.failing_since IS NOT NULL AND state.subscription_id IN (SELECT id FROM svc.subscriptions WHERE user_id = NEW.id)
    ORDER BY state.subscription_id FOR UPDATE));
  RETURN NULL;
END
$$;
CREATE TRIGGER renew_states AFTER UPDATE OF disabled_at ON svc.users
  FOR EACH ROW WHEN (OLD.disabled_at IS NOT NULL AND NEW.disabled_at IS NULL)
  EXECUTE FUNCTION svc.renew_user_states();
