# One image, three programs: `svc api`, `svc dispatcher` and `svc-admin`; without arguments `svc all` on the embedded database.
# .ci/image builds it and proves what is said here.
# A tag moves; a release is built on a digest: --build-arg NODE_IMAGE=docker.io/library/node:24-bookworm-slim@sha256:… (docs/production.md).
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

# Bundles the programs and the console.
FROM ${NODE_IMAGE} AS build
WORKDIR /opt/svc
COPY package.json package-lock.json ./
# No package needs its install script, and Prisma's would download an engine that is not used.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json rolldown.config.ts vite.config.ts ./
COPY src src
# A clone under umask 077 has files that only their owner may read. COPY keeps their modes, here and below, and so does the build.
RUN npm run build && find dist -name '*.map' -delete && chmod -R a+rX dist && chmod +x dist/bin/*.js

# The packages of production, in a stage of their own: the layer stays the same while the lock file does.
# Optional and peer packages are left out because Prisma's CLI is a peer of its client: 250 MB that nothing loads.
FROM ${NODE_IMAGE} AS packages
WORKDIR /opt/svc
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --omit=peer --ignore-scripts --no-audit --no-fund
# Then what Node.js never loads: source maps, type declarations, documentation (licences stay), tests; Prisma's compilers for other
# databases and its runtimes for other platforms; OpenTelemetry's builds for bundlers.
RUN cd node_modules \
  && find . -type f ! -iname 'licen[cs]e*' ! -iname 'notice*' \
    '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' ')' -delete \
  && find . -depth -type d '(' -name test -o -name benchmarks -o -name examples ')' -exec rm -r '{}' + \
  && find @prisma/client/runtime -type f ! -name client.js ! -name 'query_compiler_fast_bg.postgresql.*mjs' -delete \
  && rm -rf @types @opentelemetry/*/build/esm @opentelemetry/*/build/esnext

# Debian and Node.js, without what only building needs, npm above all. An init as PID 1 passes signals on and reaps what is left.
FROM ${NODE_IMAGE} AS runtime
RUN apt-get update \
  && apt-get install --yes --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /usr/share/locale /usr/share/man \
    /opt/yarn* /usr/local/bin/[!n]* /usr/local/bin/np* /usr/local/include /usr/local/lib/node_modules /usr/local/share \
  && ln -s /opt/svc/dist/bin/svc.js /usr/local/bin/svc \
  && ln -s /opt/svc/dist/bin/svc-admin.js /usr/local/bin/svc-admin

# From scratch, for in layers of the base image what has been removed would still be there.
FROM scratch
COPY --from=runtime / /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN install --directory --owner=1000 --group=1000 --mode=0700 /data
COPY docker-entrypoint.sh /usr/local/bin/
# The samples: mount a folder of your own over /etc/svc. The program has its own copy of the schemas.
COPY config /etc/svc
COPY config/schema /opt/svc/config/schema
COPY prisma/migrations /opt/svc/prisma/migrations
COPY package.json LICENSE /opt/svc/
RUN chmod -R a+rX /etc/svc /opt/svc /usr/local/bin/docker-entrypoint.sh
COPY --from=packages /opt/svc/node_modules /opt/svc/node_modules
COPY --from=build /opt/svc/dist /opt/svc/dist

# One arena for all threads: with one for each, glibc keeps 10 MB more (docs/decisions/0045).
ENV MALLOC_ARENA_MAX=1
# The host is that of the container, whose ports are published or not from outside; it wins over http.host of a service.yaml.
ENV NODE_ENV=production SVC_CONFIG_DIR=/etc/svc SVC_DATA_DIR=/data SVC_HOST=0.0.0.0
# Paths in messages lead from here: `resources/orders.yaml:12:3`.
WORKDIR /etc/svc
# By number, so that Kubernetes sees that it is not root.
USER 1000:1000
# The embedded database. Everything else may be read-only, but for /tmp.
VOLUME /data
EXPOSE 8080 9090
# Ready, not only alive: what waits for a healthy container wants to use it.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/opt/svc/dist/bin/healthcheck.js"]
ENTRYPOINT ["tini", "--", "docker-entrypoint.sh"]
CMD ["all"]

# Last, for they differ in every build.
ARG NODE_IMAGE
ARG VERSION=0.0.0-dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="svc" \
  org.opencontainers.image.description="A REST API over PostgreSQL from YAML mapping files, and signed webhooks that are never lost" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.base.name="${NODE_IMAGE}" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.created="${CREATED}"
