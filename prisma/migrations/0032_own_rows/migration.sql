-- A program may make a token for each run, or a user a thousand replays: what has ended is kept for a month, and must cost nobody anything.
-- A new token counts those in force. One that has expired is not revoked, so the index has the ends too.
CREATE INDEX tokens_in_force_idx ON svc.tokens (user_id, expires_at) WHERE revoked_at IS NULL;
-- Those that ended longest ago are deleted first.
CREATE INDEX tokens_ended_idx ON svc.tokens (least(revoked_at, expires_at)) WHERE least(revoked_at, expires_at) IS NOT NULL;
-- The replays of a user, newest first.
CREATE INDEX replays_user_id_id_idx ON svc.replays (user_id, id);
