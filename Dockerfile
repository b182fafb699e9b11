# --build-arg names other base images: GO_IMAGE is any Debian-based Go image whose C library is not newer than the server
# image's; SERVER_IMAGE is any Debian-based server image; INIT_IMAGE is any image with a shell and cp.
ARG GO_IMAGE=go
ARG SERVER_IMAGE=server
ARG INIT_IMAGE=shell

# Dependabot finds images only in such lines, and keeps a digest up to date, as in redis:8-trixie@sha256:.. AS server.
FROM golang:1.26-bookworm AS go
FROM redis:8-trixie AS server
FROM busybox:1.37 AS shell

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY . .
# The modes are set here because a clone under a strict umask has stricter modes.
RUN build/module.sh && chmod 0755 build/image-entrypoint.sh build/image-init.sh

# An init container: it copies the module into a volume that a server's container has mounted, too.
FROM ${INIT_IMAGE} AS init
COPY --from=build /src/build/out/gothrottle.so /gothrottle.so
COPY --from=build /src/build/image-init.sh /usr/local/bin/image-init.sh
# A new volume of Docker takes the owner of the folder that it covers.
RUN mkdir /modules && chown 1000:1000 /modules
USER 1000:1000
ENTRYPOINT ["image-init.sh"]

# The last stage is what docker build makes: a server with the module.
FROM ${SERVER_IMAGE}
COPY --from=build /src/build/out/gothrottle.so /usr/lib/redis/modules/gothrottle.so
COPY --from=build /src/build/image-entrypoint.sh /usr/local/bin/gothrottle-entrypoint.sh
# The server's user in the official redis and valkey images. It is a number, so that an orchestrator sees that it is not
# root.
USER 999:999
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD $(command -v redis-cli || command -v valkey-cli) ping | grep -Eq 'PONG|NOAUTH'
ENTRYPOINT ["gothrottle-entrypoint.sh"]
