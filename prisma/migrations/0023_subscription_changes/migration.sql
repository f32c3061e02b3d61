-- Which transactions have changed what the fan-out reads of subscriptions and their users. A dispatcher that answers from memory makes sure,
-- in the statement that writes the deliveries, that none has become visible since it read. Times would not do: a commit may come long after.
CREATE TABLE svc.subscription_changes (
  -- Top-level transaction, as in svc.outbox.
  transaction_id bigint PRIMARY KEY
);
ALTER TABLE svc.subscription_changes ALTER COLUMN transaction_id SET STATISTICS 0;

-- It has the rights of the role that migrates, so that writers need none on the table. Each transaction has a key of its own: none waits for
-- another. A statement that changes no row counts as none: the state of receivers is written by one that seldom changes a subscription.
CREATE FUNCTION svc.note_subscription_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP <> 'TRUNCATE' THEN
    IF NOT EXISTS (SELECT FROM changed) THEN
      RETURN NULL;
    END IF;
  END IF;
  INSERT INTO svc.subscription_changes (transaction_id) VALUES (pg_current_xact_id()::text::bigint) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION svc.note_subscription_change() FROM PUBLIC;

-- Of a whole statement, so that one for 100,000 rows notes it once. Of all columns: hardly anything else of these tables changes.
CREATE TRIGGER note_insert AFTER INSERT ON svc.subscriptions REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_update AFTER UPDATE ON svc.subscriptions REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_delete AFTER DELETE ON svc.subscriptions REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_truncate AFTER TRUNCATE ON svc.subscriptions
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();

CREATE TRIGGER note_insert AFTER INSERT ON svc.users REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_update AFTER UPDATE ON svc.users REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_delete AFTER DELETE ON svc.users REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
CREATE TRIGGER note_truncate AFTER TRUNCATE ON svc.users
  FOR EACH STATEMENT EXECUTE FUNCTION svc.note_subscription_change();
