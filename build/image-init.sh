#!/bin/sh
# image-init.sh [FOLDER]  copies the module into a folder, /modules by default. An init container runs it, and a server
# loads the module from the volume that both have mounted.
set -eu
folder=${1:-/modules}
new=$folder/.gothrottle.so.new
cp /gothrottle.so "$new"
# The server loads only files that may be executed, whatever the umask was here.
chmod 0755 "$new"
# The file is renamed and never overwritten, because a running server may have the old file mapped.
mv -f "$new" "$folder/gothrottle.so"
echo "copied $folder/gothrottle.so"
