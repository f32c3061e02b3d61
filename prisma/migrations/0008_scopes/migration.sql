-- What a token may be used for. Processes of the version before ignore it: make no narrower token before all of them have gone.
ALTER TABLE svc.tokens
  ADD COLUMN scopes text[] NOT NULL DEFAULT ARRAY['*']::text[],
  -- The token of the same user that this one was made with, and that it is revoked with. No foreign key: tokens go with their user only.
  ADD COLUMN parent_id integer,
  ADD CONSTRAINT tokens_scopes_check CHECK (cardinality(scopes) > 0);

CREATE INDEX tokens_parent_id_idx ON svc.tokens (parent_id) WHERE parent_id IS NOT NULL;

-- Whom a JWT is about, by its claims: `iss`, and the one that `auth.jwt.userClaim` names.
ALTER TABLE svc.users
  ADD COLUMN issuer text,
  ADD COLUMN subject text,
  ADD CONSTRAINT users_issuer_check CHECK ((issuer IS NULL) = (subject IS NULL));

CREATE UNIQUE INDEX users_issuer_subject_key ON svc.users (issuer, subject);

DROP TRIGGER audit_change ON svc.users;

CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF name, email, is_admin, disabled_at, issuer, subject ON svc.users
  FOR EACH ROW EXECUTE FUNCTION svc.audit_change('user', 'name', 'email', 'is_admin', 'disabled_at', 'issuer', 'subject');

DROP TRIGGER audit_change ON svc.tokens;

CREATE TRIGGER audit_change AFTER INSERT OR DELETE OR UPDATE OF user_id, name, hash, scopes, parent_id, expires_at, revoked_at
  ON svc.tokens FOR EACH ROW EXECUTE FUNCTION
  svc.audit_change('token', 'user_id', 'name', 'hash', 'scopes', 'parent_id', 'expires_at', 'revoked_at');
