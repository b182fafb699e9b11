#!/bin/bash
# fetch-server.sh NAME  unpacks a server of build/servers.txt, with the C library it is built for, in
# build/out/servers/NAME. bin/*-server and bin/*-cli in there run it. The last line of the output is the server's path.
# A server that is there in the expected version is kept.
. "$(dirname "$0")/lib.sh"
name=${1:?NAME is missing}
read -r _ suite more package expected kind < <(server_rows | awk -v name="$name" '$1 == name') ||
  die "build/servers.txt has no server '$name'."
program=${package%-server}
folder=$PWD/build/out/servers/$name
server=$folder/bin/$program-server

# Debian's loader runs the program, because this machine's may be older than the program's libraries. The program takes
# the wrapper for its own file (--argv0), so it can restart itself. The folder can be moved.
wrap() {
  local loader libraries
  loader=$(find "$folder/root" -type f -name 'ld-linux-*.so.*' -print -quit)
  [ -n "$loader" ] || die "$package of $suite has no loader."
  libraries=$(basename "$(dirname "$loader")")
  mkdir -p "$folder/bin"
  cat >"$folder/bin/$1" <<END
#!/bin/sh
root=\$(readlink -f "\$0")
root=\${root%/bin/*}/root
exec "\$root/${loader#"$folder/root/"}" --argv0 "\$0" --library-path "\$root/usr/lib/$libraries:\$root/lib/$libraries" "\$root/usr/bin/$1" "\$@"
END
  chmod 755 "$folder/bin/$1"
}

version=$(server_version "$server" 2>/dev/null || true)
if ! is_version "$version" "$expected"; then
  rm -rf "$folder"
  unpack_package "$(dpkg --print-architecture)" "$suite" "$more" "$package" "$folder/root"
  wrap "$program-cli"
  wrap "$program-server"
  version=$(server_version "$server")
fi
is_version "$version" "$expected" || [ "$kind" = moving ] || die "$name is $version, and build/servers.txt expects $expected."
echo "$server"
