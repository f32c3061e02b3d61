-- What `svc-admin migrate` made in the managed tables: it changes and drops nothing else. Names are the key, since object ids do not
-- survive pg_dump and restore. The definition is PostgreSQL's own wording of an index or constraint, which tells one that somebody made
-- again under the same name; of a column it is what the mapping file asked for, which tells a change by hand from one of the file.
CREATE TABLE svc.made (
  "table" text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  -- False: somebody else made it, just as the mapping file has it. It is used, changed with the file, and never dropped.
  is_made boolean NOT NULL,
  definition text NOT NULL,
  PRIMARY KEY ("table", kind, name),
  CONSTRAINT made_kind_check CHECK (kind IN ('table', 'column', 'index', 'constraint'))
);
