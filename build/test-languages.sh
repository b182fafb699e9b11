#!/bin/bash
# The examples in other languages than Go, against a local server that is stopped and killed under them.
# Arguments are passed on to the test: -run TestExamples/python runs some of them.
. "$(dirname "$0")/lib.sh"
need_go

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# The release of Debian pins the versions of these packages. Any npm will do.
missing=()
have npm || missing+=(nodejs npm)
for package in default-jdk-headless gcc libc6-dev libhiredis-dev php-cli php-predis php-redis redis-tools \
  ruby ruby-connection-pool ruby-redis ruby-webrick \
  python3-fastapi python3-flask python3-flask-limiter python3-limits python3-redis python3-uvicorn; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  can_install || die "these packages of Debian are needed: please install ${missing[*]}."
  apt_install "${missing[@]}"
fi

# The packages of Node, and Node itself, are those of package-lock.json. They are not installed in the tree of sources.
node=build/out/node
mkdir -p $node
cp examples/node/*.js* examples/node/.npmrc $node/
if ! cmp -s $node/package-lock.json $node/node_modules/installed; then
  npm --prefix $node ci --no-audit --no-fund --loglevel=error
  cp $node/package-lock.json $node/node_modules/installed
fi

mkdir -p build/out/languages
cc -Wall -Wextra -Werror -o build/out/languages/hiredis examples/c/hiredis.c -lhiredis
javac -d build/out/languages examples/java/*.java

build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
# The examples wait for clocks, not for the processor: more of them can run at once than there are processors.
GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server \
  go test -count=1 -parallel 6 -timeout 30m ./examples "$@"
