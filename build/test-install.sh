#!/bin/bash
# go install and go get, as users would after a release: make rename gives the modules a path, and a folder serves them as a
# module proxy.
. "$(dirname "$0")/lib.sh"
need_go
need zip zip
# A version of this run alone: go keeps an index of the files that a version has.
path=example.test/gothrottle version=v$(build/version.sh)-$(date +%s) cache=$(go env GOMODCACHE)
work=$(mktemp -d)
# forget  removes these modules from Go's cache: also those of a run that was killed, which would be installed again.
forget() { rm -rf "${cache:?}/example.test" "$cache/cache/download/example.test"; }
forget
trap 'forget; rm -rf "$work"' EXIT

# publish MODULE  adds the module of this folder to the proxy, without the folders that are modules of their own.
publish() {
  local at=$work/proxy/$1/@v tree=$work/zip
  mkdir -p "$at" "$tree/$1@$version"
  find . -mindepth 2 -name go.mod -printf '%h\n' >"$work/nested"
  tar --exclude-from="$work/nested" -c . | tar -xC "$tree/$1@$version"
  (cd "$tree" && zip -qrX "$at/$version.zip" "$1@$version")
  cp go.mod "$at/$version.mod"
  echo "{\"Version\": \"$version\"}" >"$at/$version.info"
  echo "$version" >"$at/list"
  rm -rf "$tree"
}

mkdir "$work/copy" "$work/user"
git ls-files -z | tar --null --files-from=- -c | tar -xC "$work/copy"
cd "$work/copy"
# rename.sh refuses wrong paths, and changes every place that names the old one. The product's name stays.
old=$(go list -m)
for wrong in '' "$old" x 'example.com/a b' example.com/x/v2 https://a.example; do
  ! MODULE=$wrong build/rename.sh >/dev/null 2>&1 || die "rename.sh takes the path '$wrong'."
done
printf 'package funnel\n\nvar _ = []string{"%s", "%s/README.md", "/usr/share/%s/funnel"}\n' "$old" "$old" "$old" >funnel/names_test.go
cp funnel/names_test.go "$work/names"
MODULE=$path build/rename.sh
cmp funnel/names_test.go "$work/names"
[ -z "$(gofmt -l .)" ] || die 'rename.sh leaves files that gofmt would change.'
folders=$(find . -name '*.go' | cut -d / -f 2 | sort -u | paste -s -d '|')
! grep -rE --include=*.go --include=go.mod "(^|[ \"])$old/($folders)|(module|require|replace) $old( |\$)" . || die 'the old path is left.'
go mod tidy -diff
go list -deps -test ./... >/dev/null # which finds every import
go test -run TestImports ./build
rm funnel/names_test.go
GOPROXY=file://$work/proxy,$(go env GOPROXY)
export GOPROXY GONOSUMDB=example.test GOFLAGS=-modcacherw GOBIN=$work
publish "$path"
VERSION=$version build/gateway-module.sh
(cd gateway && publish "$path/gateway")

cd "$work/user"
go install "$path/gateway@$version"
go version -m "$work/gateway" | grep -w "$path/gateway"
go mod init example.test/user
go get "$path/throttle@$version"
cat >main_test.go <<END
package user

import (
	"testing"

	"$path/throttle"
	"$path/throttle/throttletest"
)

func TestDenied(t *testing.T) {
	client, err := throttle.New(throttletest.NewServer())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rate := client.Rate("login", throttle.PerMinute(1))
	for _, want := range []bool{true, false} {
		if r, err := rate.Allow(t.Context(), "bob"); err != nil || r.Allowed != want {
			t.Error(r, err)
		}
	}
}
END
go test .
echo 'test-install: passed'
