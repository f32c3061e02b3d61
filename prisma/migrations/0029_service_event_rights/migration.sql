-- As the capture triggers: with the rights of the role that migrates, so that writers need none on svc.events. Without them a role that may
-- not write events could not record a failed delivery either.
ALTER FUNCTION svc.service_event() SECURITY DEFINER;
REVOKE ALL ON FUNCTION svc.service_event(), svc.emit_service_event(text, text, jsonb) FROM PUBLIC;
