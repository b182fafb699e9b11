#!/bin/bash
# The examples in other languages than Go, and the Node and Python packages, on servers in memory with faults.
# Arguments are passed on to the test: -run TestExamples/python runs some of them.
. "$(dirname "$0")/lib.sh"

have npm || need_packages nodejs npm # any npm will do
need_packages default-jdk-headless php-cli php-predis php-redis ruby ruby-connection-pool ruby-redis ruby-webrick \
  mypy openssl python3-django python3-fastapi python3-flask python3-flask-limiter python3-limits python3-uvicorn

node=build/out/node
npm=(npm --prefix "$node" --no-audit --no-fund --loglevel=error)
node_modules
cp examples/node/*.js adapters/node/test/*.* $node/

# The packages are installed as a user installs them: from a packed file, and also into an empty project.
packed=$PWD/$(build/package-node.sh build/out)
"${npm[@]}" install --no-save --offline "$packed"
rm -rf build/out/empty
mkdir -p build/out/empty
(cd build/out/empty && npm init --yes >/dev/null && npm install --offline --no-audit --no-fund --loglevel=error "$packed")
# In the last setting there are no ECMAScript modules. In node16, libraries that are such modules don't check themselves.
(cd $node && cp types.mts types.cts && cp types.mts types.ts && while read -r module resolution files; do
  # shellcheck disable=SC2086 # words
  node_modules/.bin/tsc --strict --noEmit --module $module --moduleResolution $resolution --target es2022 --types node --esModuleInterop $files
done <<'END')
nodenext nodenext types.mts types.cts
node16 node16 --skipLibCheck types.mts types.cts
esnext bundler types.mts
preserve bundler types.mts types.cts
commonjs node10 types.ts
END

# Debian's redis-py has no types.
mypy --strict --disable-error-code import --cache-dir build/out/mypy adapters/python/gothrottle

python_venv

# The redis-py of Debian 13, which needs no other package.
newer=build/out/newer
if [ ! -d $newer ]; then
  work=$(work_folder)
  trap 'rm -rf "$work"' EXIT
  own_apt "$work" "$(dpkg --print-architecture)" deb trixie
  (cd "$work" && retry "${apt[@]}" download python3-redis)
  dpkg-deb -x "$work"/python3-redis*.deb $newer
fi

mkdir -p build/out/languages
javac -d build/out/languages examples/java/Limit.java

need_server
# The examples wait for clocks, not for the processor: more of them can run at the same time than there are processors.
go test -count=1 -parallel 6 -timeout 30m ./examples "$@"
