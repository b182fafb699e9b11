package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// plain has the server's own commands that a conversation about limiters needs. least and most count words with the name;
// most is 0 if there is no bound.
var plain = map[string]struct {
	least, most int
	run         func(h *host, args []string) any
}{
	"CONFIG": {3, 4, (*host).config},
	"DBSIZE": {1, 1, func(h *host, _ []string) any { return int64(h.Len(h.now)) }},
	"DEL":    {2, 0, func(h *host, args []string) any { return h.count(args, h.Delete) }},
	"UNLINK": {2, 0, func(h *host, args []string) any { return h.count(args, h.Delete) }},
	"EXISTS": {2, 0, func(h *host, args []string) any {
		return h.count(args, func(key string) bool { return h.Get(key) != nil })
	}},
	"EXPIRE":   {3, 3, func(h *host, args []string) any { return h.expire("expire", args, 1000) }},
	"PEXPIRE":  {3, 3, func(h *host, args []string) any { return h.expire("pexpire", args, 1) }},
	"PERSIST":  {2, 2, (*host).persist},
	"FLUSHALL": {1, 1, func(h *host, _ []string) any { return h.flush() }},
	"PING":     {1, 1, func(*host, []string) any { return status("PONG") }},
	"SET":      {3, 3, (*host).set},
	"TIME":     {1, 1, func(h *host, _ []string) any { return []any{decimal(h.now / 1e6), decimal(h.now % 1e6)} }},
	"TTL":      {2, 2, func(h *host, args []string) any { return h.ttl(args[0], 1000) }},
	"PTTL":     {2, 2, func(h *host, args []string) any { return h.ttl(args[0], 1) }},
	"TYPE":     {2, 2, (*host).kind},
}

// status is a reply that redis-cli prints without quotes.
type status string

func decimal(n funnel.Micros) string { return strconv.FormatInt(int64(n), 10) }

// live returns what a key holds, or nil. A key that has expired is deleted.
func (h *host) live(key string) *memory.Value {
	h.Expire(key, h.now)
	return h.Get(key)
}

// count returns for how many keys f is true.
func (h *host) count(keys []string, f func(string) bool) any {
	n := int64(0)
	for _, key := range keys {
		if h.live(key) != nil && f(key) {
			n++
		}
	}
	return n
}

func (h *host) expire(name string, args []string, unit int64) any {
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return memory.Error("ERR value is not an integer or out of range")
	}
	if most := (math.MaxInt64 - int64(h.now)/1000) / unit; n > most || n < -most {
		return memory.Error("ERR invalid expire time in '" + name + "' command")
	}
	v := h.live(args[0])
	if v == nil {
		return int64(0)
	}
	if v.Expire = int64(h.now)/1000 + n*unit; n <= 0 {
		v = nil
	}
	h.Put(args[0], v)
	return int64(1)
}

func (h *host) persist(args []string) any {
	v := h.live(args[0])
	if v == nil || v.Expire == 0 {
		return int64(0)
	}
	v.Expire = 0
	h.Put(args[0], v)
	return int64(1)
}

// ttl rounds as the server does.
func (h *host) ttl(key string, unit int64) any {
	switch v := h.live(key); {
	case v == nil:
		return int64(-2)
	case v.Expire == 0:
		return int64(-1)
	default:
		return (v.Expire - int64(h.now)/1000 + unit/2) / unit
	}
}

func (h *host) set(args []string) any {
	h.Put(args[0], &memory.Value{Kind: commands.KindString, Text: args[1]})
	return status("OK")
}

func (h *host) flush() any {
	for _, key := range h.Keys() {
		h.Delete(key)
	}
	return status("OK")
}

func (h *host) kind(args []string) any {
	v := cmp.Or(h.live(args[0]), &memory.Value{})
	return status(map[commands.Kind]string{commands.KindAbsent: "none", commands.KindHash: "hash", commands.KindZset: "zset", commands.KindString: "string"}[v.Kind])
}

// config reads and sets the configuration of the module.
func (h *host) config(args []string) any {
	verb, name := strings.ToUpper(args[0]), strings.ToLower(args[1])
	value, known := h.settings[name]
	switch {
	case verb == "GET" && len(args) == 2 && known:
		return []any{args[1], value}
	case verb == "SET" && len(args) == 3 && known:
		if err := h.setting(name, args[2]); err != nil {
			return memory.Error("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + err.Error())
		}
		h.settings[name] = args[2]
		return status("OK")
	}
	return memory.Error("ERR the page has CONFIG GET and CONFIG SET, of gothrottle.policies and gothrottle.top-keys")
}

func (h *host) setting(name, value string) error {
	if name == "gothrottle.policies" {
		return h.SetPolicies(value)
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("argument couldn't be parsed into an integer")
	}
	if n < 0 || n > commands.MaxTopKeys {
		return fmt.Errorf("argument must be between 0 and %d inclusive", commands.MaxTopKeys)
	}
	commands.CountDenials(n)
	return nil
}
