#!/bin/bash
# package-trial.sh SERVER FOLDER  is what an operator does with the package, on a Debian that runs systemd.
# test-packages.sh runs it. SERVER is redis-server or valkey-server. FOLDER has old.deb and new.deb, which differ in nothing but
# the version, and the same of the gateway; page: the lines of docs/install.md from the package to the first reply; and build/out/packages for these.
set -euo pipefail
server=$1 folder=$2
name=${server%-server}
conf=/etc/$name/$name.conf
so=/usr/lib/redis/modules/gothrottle.so
dropins=/etc/systemd/system/$server.service.d

fail() {
  echo "gothrottle: $server: $*" >&2
  tail -n 5 "/var/log/$name/$server.log" >&2 || true
  exit 1
}
# want WHAT WANTED GOT
want() { [ "$2" = "$3" ] || fail "$1: want '$2', got '$3'"; }
call() { "$name-cli" "$@" 2>&1 | xargs; }
replies() { want "$1" "0 16 15 -1 2" "$(call GO.THROTTLE "$1" 15 30 60)"; }
apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -y -qq "$@" 2>&1; }
# A server that does not start is started again and again: stop ends that.
refused() {
  ! systemctl restart "$server" 2>/dev/null || fail "it starts $1"
  systemctl stop "$server"
  systemctl reset-failed "$server"
}
drop_in() {
  mkdir -p "$dropins"
  cat >"$dropins/$1"
  systemctl daemon-reload
}

echo "== $server $("$server" --version | grep -o 'v=[0-9.]*')"
cp -a "$conf" "$folder/conf"
dpkg-deb --fsys-tarfile "$folder/old.deb" | tar -x -C "$folder" ".$so"
install -m 0755 "$folder$so" /opt/gothrottle.so
echo 'loadmodule /opt/gothrottle.so' >>"$conf"
refused 'with a module under /opt, which the sandbox forbids'
grep -q '/opt/gothrottle.so: failed to map segment' "/var/log/$name/$server.log" || fail 'it does not start for another reason'
"$name-server" --bind 127.0.0.1 --save '' --loadmodule /opt/gothrottle.so --daemonize no >"$folder/log" 2>&1 &
pid=$!
until grep -q 'Module .gothrottle. loaded' "$folder/log" || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
{ kill "$pid" && wait "$pid"; } || fail 'the module under /opt does not load without the sandbox'
cat "$folder/conf" >"$conf"

echo 'two commands from the package to the first reply'
sed "s/redis/$name/g" "$folder/page" >"$folder/lines"
printed=$(cd "$folder" && DEBIAN_FRONTEND=noninteractive bash -e lines 2>&1) || fail "the lines of docs/install.md: $printed"
want 'the first reply' '0 16 15 -1 2' "$(tail -n 5 <<<"$printed" | xargs)"
echo 'gothrottle-enable changes nothing twice, and nothing that would not work'
cp "$conf" "$folder/enabled"
# same_as FILE WHAT COMMAND ...  runs a command that must leave the configuration as in the file, and says so.
same_as() {
  local said
  said=$("${@:3}" 2>&1) || true
  [[ $said == *"$2"* ]] || fail "${*:3} says $said"
  cmp -s "$1" "$conf" || fail "${*:3} changes $conf"
}
same_as "$folder/enabled" "$conf loads gothrottle already" gothrottle-enable "$name"
mkdir -p "$folder/full"
mount -t tmpfs -o size=8k tmpfs "$folder/full"
TMPDIR=$folder/full same_as "$folder/enabled" 'No space left on device' gothrottle-disable "$name"
umount "$folder/full"
[[ $(gothrottle-disable "$name") == *"    loadmodule $so"* ]] || fail 'gothrottle-disable does not say what it took out'
diff -B "$folder/conf" "$conf" >&2 || fail 'gothrottle-disable leaves something behind'
cp "$conf" "$folder/disabled"
same_as "$folder/disabled" 'does not load gothrottle' gothrottle-disable "$name"
chmod 0644 "$so"
same_as "$folder/disabled" 'does not load the module' gothrottle-enable "$name"
chmod 0755 "$so"
echo "loadmodule $so" >"$folder/included"
echo "include $folder/included" >>"$conf"
cp "$conf" "$folder/includes"
same_as "$folder/includes" "$folder/included loads gothrottle" gothrottle-enable "$name"
cat "$folder/disabled" >"$conf"
gothrottle-enable "$name" >/dev/null
want 'owner and mode' "$(stat -c '%U %a' "$folder/conf")" "$(stat -c '%U %a' "$conf")"

pid=$(systemctl show -P MainPID "$server")
want 'system calls are filtered' 'Seccomp: 2' "$(grep -w Seccomp: "/proc/$pid/status" | xargs)"
want 'the user' "$name" "$(stat -c %U "/proc/$pid")"

# Before CONFIG REWRITE: that writes the unit's "daemonize no" into the file, and the script would wait forever.
echo 'the start script without systemd'
systemctl stop "$server"
SYSTEMCTL_SKIP_REDIRECT=1 "/etc/init.d/$server" restart >/dev/null 2>&1
# The script does not wait until the server listens.
for _ in {1..600}; do [ "$(call PING)" != PONG ] || break; sleep 0.1; done
replies script
SYSTEMCTL_SKIP_REDIRECT=1 "/etc/init.d/$server" stop >/dev/null
systemctl start "$server"

echo 'CONFIG REWRITE, which Sentinel sends at a failover'
want 'CONFIG REWRITE' OK "$(call CONFIG REWRITE)"
want 'loadmodule lines' 1 "$(grep -c '^loadmodule' "$conf")"
systemctl restart "$server"
replies rewritten

echo 'the settings of the snippet'
sed -i 's/^# \(gothrottle\.\)/\1/' "$conf"
systemctl restart "$server"
want 'the policy' '0 10 9 -1 1' "$(call GO.POLICY api:bob | cut -d' ' -f1-5)"
want 'top-keys' 'gothrottle.top-keys 1000' "$(call CONFIG GET gothrottle.top-keys)"
want 'CONFIG REWRITE with settings' OK "$(call CONFIG REWRITE)"
systemctl restart "$server"
want 'the policy after CONFIG REWRITE' '0 10 9 -1 1' "$(call GO.POLICY api:ann | cut -d' ' -f1-5)"

echo 'the gateway: two commands from the package to a denial'
# ask  prints the status of a request to the gateway, or nothing if it does not listen yet.
ask() { (exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /check HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3 | cut -d ' ' -f 2) 2>/dev/null || true; }
# asks WANTED  waits until the gateway answers with this status.
asks() {
  local got try
  for try in {1..300}; do
    got=$(ask)
    [ "$got" != "$1" ] || return 0
    sleep 0.1
  done
  fail "the gateway answers '$got' at try $try, want $1: $(journalctl -n 5 -u gothrottle-gateway 2>&1)"
}
unit=gothrottle-gateway.service
apt_get install "$folder/gateway-old.deb" >/dev/null
want 'a new installation starts nothing' inactive "$(systemctl is-active $unit || true)"
want 'systemd-analyze verify' '' "$(systemd-analyze verify --man=no $unit 2>&1 | grep gateway || true)"
systemctl --quiet enable --now $unit
asks 429 # after two that it admits
sed -i 's/requests_per_unit: 2,/requests_per_unit: 4,/' /etc/gothrottle-gateway/rules/rules.yaml
asks 200
asks 429
pid=$(systemctl show -P MainPID $unit)
for file in "$conf" /etc/gothrottle-gateway/settings; do
  ! setpriv --reuid "$(stat -c %u "/proc/$pid")" --regid "$(stat -c %g "/proc/$pid")" --clear-groups cat "$file" >/dev/null 2>&1 || fail "the gateway can read $file"
done
apt_get install "$folder/gateway-new.deb" >/dev/null
asks 429
[ "$pid" != "$(systemctl show -P MainPID $unit)" ] || fail 'the old gateway runs on after an upgrade'
grep -q 'requests_per_unit: 4,' /etc/gothrottle-gateway/rules/rules.yaml || fail 'an upgrade changes the rules'
apt_get remove gothrottle-gateway >/dev/null
want 'a removed gateway' '' "$(ask)"
[ -e /etc/gothrottle-gateway/settings ] || fail 'removal deletes the settings'
apt_get purge gothrottle-gateway >/dev/null
[ ! -e /etc/gothrottle-gateway ] || fail 'purge leaves the settings'
call FLUSHALL >/dev/null

echo 'a stricter unit, and the drop-in'
for limit in LimitAS=300M "ExecPaths=
ExecPaths=/usr/bin/$server /usr/lib/$(uname -m)-linux-gnu /usr/lib64 /lib64"; do
  printf '[Service]\nTasksMax=8\n%s\n' "$limit" | drop_in 50-strict.conf
  refused "with $limit"
  drop_in gothrottle.conf </usr/share/gothrottle/systemd-drop-in.conf
  want 'systemd-analyze verify' '' "$(systemd-analyze verify --man=no "$server.service" 2>&1)"
  want TasksMax 256 "$(systemctl show -P TasksMax "$server")"
  systemctl restart "$server"
  replies "$limit"
  rm "$dropins/gothrottle.conf"
done
rm -r "$dropins"
systemctl daemon-reload

echo 'upgrade: the running server keeps the old file until its restart'
systemctl restart "$server"
apt_get install "$folder/new.deb" >/dev/null
grep -q "$so (deleted)" "/proc/$(systemctl show -P MainPID "$server")/maps" || fail 'the new file is in use already'
replies upgraded
systemctl restart "$server"
replies upgraded-and-restarted

echo 'removal, while a second server is set up in a folder of its own'
cp "$folder/disabled" "$folder/other.conf"
gothrottle-enable "$folder/other.conf" >/dev/null
note=$(apt_get remove gothrottle)
[[ $note == *"Took these lines out of $conf"*"loadmodule $so"*"gothrottle.policies"* ]] || fail "removal does not say what it took out: $note"
[[ $note == *"Took these lines out of $folder/other.conf"* && $note == *'Restart the server'* ]] || fail "removal says $note"
[ ! -e /usr/share/gothrottle ] || fail 'files are left behind'
diff -B "$folder/disabled" "$folder/other.conf" >&2 || fail 'removal leaves something behind in another file'
replies removed
systemctl restart "$server"
want 'a server without the module' PONG "$(call PING)"
apt_get purge gothrottle >/dev/null
for file in "$so" /var/lib/gothrottle; do [ ! -e "$file" ] || fail "purge leaves $file"; done
note=$(apt_get install "$folder/old.deb" && apt_get remove gothrottle)
[[ $note != *'Took these lines'* && ! -e $so ]] || fail "removal changes a file that does not load the module: $note"
mkdir -p "${so%/*}"
cp "$folder$so" "$so" # built from source
echo "loadmodule $so" >>"$conf"
apt_get purge gothrottle >/dev/null
[ -e "$so" ] || fail 'purge deletes a module that is not of the package'
systemctl restart "$server"
rm "$so"

echo 'the server starts after each order of removal, purge, upgrade and CONFIG REWRITE'
# step WHAT  is one step of an order. It also resets systemd's count of starts: five in 10 s are the limit.
step() {
  case $1 in
  downgrade) apt_get install --allow-downgrades "$folder/old.deb" ;;
  enable) gothrottle-enable "$name" ;;
  rewrite) call CONFIG REWRITE ;;
  restart) systemctl reset-failed "$server" && systemctl restart "$server" && want "$order" PONG "$(call PING)" ;;
  upgrade) apt_get install "$folder/new.deb" ;;
  *) apt_get "$1" gothrottle ;;
  esac >"$folder/log" || fail "$order: $1: $(cat "$folder/log")"
}
for order in 'remove rewrite restart' 'rewrite remove restart rewrite restart' 'purge rewrite restart' 'remove purge rewrite restart' \
  'remove restart purge restart' 'remove rewrite restart purge restart' 'remove rewrite restart purge rewrite restart' \
  'upgrade remove rewrite restart' 'upgrade rewrite restart purge rewrite restart' 'remove rewrite upgrade restart'; do
  cat "$folder/conf" >"$conf"
  for what in downgrade enable restart $order; do step "$what"; done
  dpkg --purge gothrottle >/dev/null 2>&1 # apt-get of Debian 13 does not know a package that was purged
done
systemctl stop "$server"
