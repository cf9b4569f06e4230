# The program, its dependencies and Node; nothing of what built it. docs/running.md says how to run it.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json LICENSE ./
COPY scripts scripts
COPY src src
COPY docs docs
RUN npm run build

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without scripts: better-sqlite3 brings its binaries, and its build step would want a compiler.
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/src/warehouse/migrations src/warehouse/migrations
COPY package.json LICENSE ./
COPY config config
# Group 0 may write too: some platforms run the container under a user id of their own, in that group.
RUN install -d -o 10001 -g 0 -m 2770 /data \
  && ln -s /app/dist/cli/main.js /usr/local/bin/mds-sync

# All that is ever written lies in /data; the root file system may be read-only. The port of the health check is this
# one whatever a settings file says: the environment beats the file. MALLOC_*: freed memory is given back, not kept;
# NODE_OPTIONS: a small nursery for short-lived objects is as fast as V8's largest.
ENV NODE_ENV=production \
  MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=131072 \
  NODE_OPTIONS=--max-semi-space-size=2 \
  MDS_WAREHOUSE=/data/mds.sqlite \
  MDS_HTTP_HOST=0.0.0.0 \
  MDS_HTTP_PORT=9464
WORKDIR /data
VOLUME /data
USER 10001:0
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MDS_HTTP_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# The program handles signals itself, also as process 1.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["run"]
