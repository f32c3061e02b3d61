-- An admin filters the audit trail by the kind of action, newest first. A user may have left a million rows of another kind.
CREATE INDEX audit_action_kind_idx ON svc.audit (split_part(action, '.', 1), occurred_at, id);
