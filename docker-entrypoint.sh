#!/bin/sh
# `docker run IMAGE api` is `svc api`; what is a command of its own (`svc-admin migrate`, `sh`) is run as it stands.
command -v -- "${1:-}" >/dev/null || set -- svc "$@"
exec "$@"
