#!/bin/bash
# Prints the module's version, which stands in module/main.go only. If TAG is set, as v1.2.3, it must be the tag of that
# version, the changelog must have the version's heading, and no address may be a placeholder.
. "$(dirname "$0")/lib.sh"
version=$(sed -n 's/^const version = "\([0-9]*\.[0-9]*\.[0-9]*\)"$/\1/p' module/main.go)
[ -n "$version" ] || die 'module/main.go has no version.'
if [ -n "${TAG:-}" ]; then
  [ "$TAG" = "v$version" ] || die "the tag is $TAG, but the version in module/main.go is $version."
  grep -q "^## ${version//./\\.} - " CHANGELOG.md || die "CHANGELOG.md has no heading of version $version."
  left=$(grep -rlF gothrottle.invalid ./*.md .github build/image.sh adapters/node/package.json adapters/python/pyproject.toml deploy 2>/dev/null | xargs) || true
  [ -z "$left" ] || die "set the addresses in $left: docs/releasing.md."
fi
echo "$version"
