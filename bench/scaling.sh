#!/bin/bash
# scaling.sh [SERVER]  prints what a decision costs with I/O threads, on one key, and on 1 to 3 shards, as in docs/scaling.md:
# processor time of all threads and of the main threads, and decisions per second. CALLS= is how many there are.
. "$(dirname "$0")/../build/lib.sh"
build/module.sh
server=$(command -v "${1:-redis-server}") folder=$(mktemp -d) ports=() first=$((20000 + $$ % 10000)) rate=(1000000 60 3600)
trap 'end; rm -rf "$folder"' EXIT

# begin N ARGUMENT ...  starts N servers.
begin() {
  for ((port = first; port < first + $1; port++)); do
    "$server" --bind 127.0.0.1 --port "$port" --dir "$folder" --save '' --loadmodule "$PWD/build/out/gothrottle.so" "${@:2}" \
      --cluster-config-file "nodes-$port.conf" >/dev/null &
    ports+=("$port")
    until redis-cli -p "$port" PING 2>/dev/null | grep -q PONG; do sleep 0.1; done
  done
}
end() {
  for port in "${ports[@]}"; do redis-cli -p "$port" SHUTDOWN NOSAVE || true; done
  wait
  ports=() first=$((first + 3))
}
# used  prints the processor time of all servers in µs: of all threads, and of the main threads.
used() {
  for port in "${ports[@]}"; do redis-cli -p "$port" INFO cpu; done |
    awk -F: '/^used_cpu_(user|sys):/ { all += $2 } /main_thread:/ { main += $2 } END { print all * 1e6, main * 1e6 }'
}
# load NAME DEPTH OPTION ... CALL ...  lets redis-benchmark send calls over 50 connections.
load() {
  local n=$((${CALLS:-2000000} / ($2 > 1 ? 1 : 10))) before out
  redis-benchmark -p "$first" -n "$((n / 10))" -P "$2" -r 100000 -q "${@:3}" >/dev/null
  before=$(used)
  out=$(redis-benchmark -p "$first" -n "$n" -P "$2" -r 100000 -q "${@:3}" | grep -o '[0-9.]* requests per second' | tail -n 1)
  awk -v name="$1" -v n="$n" -v out="$out" '{ printf "%-28s %6.2f µs %6.2f µs %9d/s\n", name, ($3 - $1) / n, ($4 - $2) / n, out }' <<<"$before $(used)"
}

"$server" --version
for threads in 1 2 4; do
  begin 1 --io-threads "$threads"
  load "io-threads $threads" 32 GO.THROTTLE k__rand_int__ "${rate[@]}"
  load "io-threads $threads, not pipelined" 1 GO.THROTTLE k__rand_int__ "${rate[@]}"
  load "io-threads $threads, one key" 32 GO.THROTTLE hot 999999999 60 60
  load "io-threads $threads, one key, denied" 32 GO.THROTTLE no 0 1 3600
  load "io-threads $threads, batches of 10" 32 GO.THROTTLE ten 999999999 60 60 10 UPTO
  end
done
for shards in 1 2 3; do
  begin "$shards" --cluster-enabled yes
  for ((i = 0; i < shards; i++)); do
    redis-cli -p "${ports[i]}" CLUSTER ADDSLOTSRANGE $((16384 * i / shards)) $((16384 * (i + 1) / shards - 1))
    redis-cli -p "${ports[i]}" CLUSTER MEET 127.0.0.1 "$first"
  done >/dev/null
  for port in "${ports[@]}"; do
    until redis-cli -p "$port" CLUSTER INFO | grep -c "state:ok\|known_nodes:$shards" | grep -q 2; do sleep 0.1; done
  done
  cluster=(--cluster) # redis-benchmark refuses a cluster of one
  [ "$shards" != 1 ] || cluster=()
  load "$shards shards" 32 "${cluster[@]}" GO.THROTTLE 'k{tag}__rand_int__' "${rate[@]}"
  end
done
