# GO_IMAGE is any Debian-based Go image whose C library is not newer than the server image's; SERVER_IMAGE is any
# Debian-based server image.
ARG GO_IMAGE=golang:1.26-bookworm
ARG SERVER_IMAGE=redis:8-trixie

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY . .
# The mode is set here because a clone under a strict umask has a stricter mode.
RUN build/module.sh && chmod 0755 build/image-entrypoint.sh

FROM ${SERVER_IMAGE}
COPY --from=build /src/build/out/gothrottle.so /usr/lib/redis/modules/gothrottle.so
COPY --from=build /src/build/image-entrypoint.sh /usr/local/bin/gothrottle-entrypoint.sh
# The server's user in the official redis and valkey images. It is a number, so that an orchestrator sees that it is not
# root.
USER 999:999
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD $(command -v redis-cli || command -v valkey-cli) ping | grep -Eq 'PONG|NOAUTH'
ENTRYPOINT ["gothrottle-entrypoint.sh"]
