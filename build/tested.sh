#!/bin/bash
# Writes the table of docs/tested.md from docs/tested.tsv: date, what was run, server, calls, faults, seconds, machine.
. "$(dirname "$0")/lib.sh"
table() {
  echo '| what | server | calls | faults | hours | last run | machines |'
  echo '|---|---|---:|---:|---:|---|---|'
  awk -F '\t' '{ row = $2 " | " $3; calls[row] += $4; faults[row] += $5; seconds[row] += $6; last[row] = $1
      if (!seen[row, $7]++) machines[row] = machines[row] (machines[row] ? ", " : "") $7 }
    END { for (row in calls) printf "| %s | %d | %d | %.2f | %s | %s |\n", row, calls[row], faults[row], seconds[row] / 3600, last[row], machines[row] }' \
    docs/tested.tsv | sort
  awk -F '\t' '{ calls += $4; faults += $5; seconds += $6 } END { printf "| all | | %d | %d | %.2f | | |\n", calls, faults, seconds / 3600 }' docs/tested.tsv
}
page=$(sed '/<!-- table -->/q' docs/tested.md && table && sed -n '/<!-- end of the table -->/,$p' docs/tested.md)
printf '%s\n' "$page" >docs/tested.md
