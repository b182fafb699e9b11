#!/bin/bash
# The short black-box tests inside a container of the image, and the image as users start it. Its server is one of those that
# test-servers.sh tests in full.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
need_go
need gcc gcc
build/image.sh
CGO_ENABLED=0 go test -c -o build/out/tests.test ./tests
gcc -shared -fPIC -o build/out/clock.so tests/server/testdata/clock.c -ldl
# The container has neither Go nor a compiler: these tests need a server and nothing else.
only='^Test(ACL|Corpus|Load_forked|Operating_users|Pages_calls|Replication|Surface)'
# The folder of the tests is the one in which go test would run them. The network has only 127.0.0.1.
"$DOCKER" run --rm --pull=never --network none --volume "$PWD:$PWD:ro" --workdir "$PWD/tests" \
  --env GOTHROTTLE_MODULE=/usr/lib/redis/modules/gothrottle.so --env GOTHROTTLE_CLOCK_LIBRARY="$PWD/build/out/clock.so" \
  --entrypoint "$PWD/build/out/tests.test" "$IMAGE" -test.timeout 40m -test.short -test.run "$only"
# The lines of README.md for Docker alone: the second call is denied.
trap '"$DOCKER" rm --force limits >/dev/null 2>&1 || true' EXIT
said=$(docker() { "$DOCKER" "$@"; } && set -e && eval "$(sed -n 's/^    \(docker .*\)/\1/p' README.md)")
[ "$(sed -n '2p; 7p' <<<"$said" | xargs)" = '0 1' ] || die "the lines of README.md for Docker: $said"
GOTHROTTLE_DOCKER_CLI=$DOCKER GOTHROTTLE_IMAGE=$IMAGE go test -count=1 -timeout 40m -run '^TestImage_' ./tests
