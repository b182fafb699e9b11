package commands

import "strings"

// Table lists every command.
var Table = []Command{
	throttle,
	clThrottle,
	window,
	quota,
	lease,
	release,
	all,
	policy,
	throttle.readOnly(),
	window.readOnly(),
	quota.readOnly(),
	lease.readOnly(),
	all.readOnly(),
	policy.readOnly(),
	info,
	top,
}

// Find returns the row of the command with this name, in any case of letters; nil if there is none.
func Find(name string) *Command {
	for i := range Table {
		if strings.EqualFold(Table[i].Name, name) {
			return &Table[i]
		}
	}
	return nil
}
