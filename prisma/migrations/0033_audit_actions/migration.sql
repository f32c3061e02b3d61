-- A user may leave a million rows about tokens and webhooks, and an admin asks for those about users: by kinds of actions, newest first.
CREATE INDEX audit_action_kind_idx ON svc.audit (split_part(action, '.', 1), occurred_at, id);
