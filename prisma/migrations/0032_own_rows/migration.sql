-- A program may create a token for each run, and a user a thousand replays. Rows that have ended stay for a month, and no statement reads them.
-- The creation of a token counts the tokens in force. An expired token is not revoked, so the index also has the expiry.
CREATE INDEX tokens_in_force_idx ON svc.tokens (user_id, expires_at) WHERE revoked_at IS NULL;
-- The pruner deletes the tokens that ended first.
CREATE INDEX tokens_ended_idx ON svc.tokens (least(revoked_at, expires_at)) WHERE least(revoked_at, expires_at) IS NOT NULL;
-- The replays of a user, newest first.
CREATE INDEX replays_user_id_id_idx ON svc.replays (user_id, id);
