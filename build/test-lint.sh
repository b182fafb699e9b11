#!/bin/bash
# The form of the code: gofmt, words, shell scripts, C, and go vet of the root module. What tests another module also vets it.
. "$(dirname "$0")/lib.sh"
need_cc

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || die "gofmt would change: $unformatted"
build/test-words.sh
lint_module .
have shellcheck || ! can_install || apt_install shellcheck || true
scripts=$(find . \( -path ./build/out -o -name node_modules \) -prune -o -name '*.sh' -print)
if have shellcheck; then
  # shellcheck disable=SC2086 # one name after another
  shellcheck $scripts .ci/run deploy/packaging/{gothrottle-enable,prerm,postrm} deploy/packaging/gateway/{postinst,prerm,postrm}
elif [ "${CI:-}" = true ]; then
  die 'shellcheck is needed: please install it.'
else
  echo 'lint: shell scripts were NOT checked: please install shellcheck.'
fi
# A file that includes cgo's generated header compiles only inside go build; go vet above has compiled those files. The API
# decides which parameters a function of fakehost has.
read -ra cc <<<"${CC:-$(go env CC)}"
grep -rL --include='*.c' --exclude-dir=out '_cgo_export\.h' . | xargs "${cc[@]}" -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror
echo 'lint: nothing to complain about'
