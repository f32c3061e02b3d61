-- Which resources a relay publishes. One whose mapping files are older than those of another keeps nothing that it does not know. Null in rows of
-- the version before: it counts as knowing all.
ALTER TABLE svc.relays ADD COLUMN resources text[];
