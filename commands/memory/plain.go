package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Status is a reply that redis-cli prints without quotes.
type Status string

// many is more words than a call has.
const many = math.MaxInt

// plain has commands of the server itself: those that the module replicates, and those of a conversation about limiters.
// least and most count words with the name.
var plain = map[string]struct {
	least, most int
	run         func(c *plainCall) any
}{
	"CONFIG":    {3, 4, (*plainCall).config},
	"DBSIZE":    {1, 1, (*plainCall).size},
	"DEL":       {2, many, func(c *plainCall) any { return c.count((*shard).remove) }},
	"EXISTS":    {2, many, func(c *plainCall) any { return c.count(func(*shard, string) bool { return true }) }},
	"EXPIRE":    {3, 3, func(c *plainCall) any { return c.expire(c.now, 1000) }},
	"FLUSHALL":  {1, 1, (*plainCall).flush},
	"HDEL":      {3, many, func(c *plainCall) any { return c.elements(commands.KindHash, 1) }},
	"HSET":      {4, many, func(c *plainCall) any { return c.elements(commands.KindHash, 2) }},
	"PERSIST":   {2, 2, (*plainCall).persist},
	"PEXPIRE":   {3, 3, func(c *plainCall) any { return c.expire(c.now, 1) }},
	"PEXPIREAT": {3, 3, func(c *plainCall) any { return c.expire(0, 1) }},
	"PING":      {1, 1, func(*plainCall) any { return Status("PONG") }},
	"PTTL":      {2, 2, func(c *plainCall) any { return c.ttl(1) }},
	"RPUSH":     {3, 3, (*plainCall).push},
	"SET":       {3, 5, (*plainCall).write},
	"TIME":      {1, 1, func(c *plainCall) any { return []any{decimal(c.now / 1e6), decimal(c.now % 1e6)} }},
	"TTL":       {2, 2, func(c *plainCall) any { return c.ttl(1000) }},
	"TYPE":      {2, 2, (*plainCall).kind},
	"UNLINK":    {2, many, func(c *plainCall) any { return c.count((*shard).remove) }},
	"ZADD":      {4, many, func(c *plainCall) any { return c.elements(commands.KindZset, 2) }},
	"ZMSCORE":   {3, many, (*plainCall).scores},
	"ZREM":      {3, many, func(c *plainCall) any { return c.elements(commands.KindZset, 1) }},
}

// plainCall is a call of one of them.
type plainCall struct {
	*Server
	now  funnel.Micros // by the clock by which keys expire
	name string
	args []string
}

// doPlain runs a command that isn't one of gothrottle's. All shards are locked.
func (s *Server) doPlain(now funnel.Micros, words []string) (any, error) {
	c := &plainCall{s, now - s.lag, strings.ToUpper(words[0]), words[1:]}
	p, known := plain[c.name]
	switch {
	case !known:
		return nil, unknown(words)
	case len(words) < p.least || len(words) > p.most:
		return nil, wrongNumber(c.name)
	}
	reply := p.run(c)
	if err, failed := reply.(Error); failed {
		return nil, err
	}
	return reply, nil
}

// unknown is the server's own error.
func unknown(words []string) Error {
	args := ""
	for _, word := range words[1:] {
		if len(args) < 128 {
			args += "'" + word[:min(len(word), 128-len(args))] + "' "
		}
	}
	return Error("ERR unknown command '" + words[0][:min(len(words[0]), 128)] + "', with args beginning with: " + args)
}

func wrongNumber(name string) Error {
	return Error("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
}

func decimal(n funnel.Micros) string { return strconv.FormatInt(int64(n), 10) }

// live returns what the first key holds, or nil.
func (c *plainCall) live() *Value { return c.at(c.args[0]).alive(c.args[0], c.now) }

func (c *plainCall) size() any {
	return int64(c.Server.size(c.now))
}

func (c *plainCall) flush() any {
	for i := range c.shards {
		clear(c.shards[i].keys)
	}
	return Status("OK")
}

// count returns for how many keys f is true.
func (c *plainCall) count(f func(*shard, string) bool) any {
	n := int64(0)
	for _, key := range c.args {
		if sh := c.at(key); sh.alive(key, c.now) != nil && f(sh, key) {
			n++
		}
	}
	return n
}

// expire sets an expiry so many units after a time. A unit is in ms.
func (c *plainCall) expire(from funnel.Micros, unit int64) any {
	n, err := strconv.ParseInt(c.args[1], 10, 64)
	if err != nil {
		return Error("ERR value is not an integer or out of range")
	}
	if most := (math.MaxInt64 - int64(from)/1000) / unit; n > most || n < -most {
		return Error("ERR invalid expire time in '" + strings.ToLower(c.name) + "' command")
	}
	v := c.live()
	if v == nil {
		return int64(0)
	}
	if v.Expire = int64(from)/1000 + n*unit; v.Expire <= int64(c.now)/1000 {
		c.at(c.args[0]).remove(c.args[0])
	}
	return int64(1)
}

func (c *plainCall) persist() any {
	v := c.live()
	if v == nil || v.Expire == 0 {
		return int64(0)
	}
	v.Expire = 0
	return int64(1)
}

// ttl rounds as the server does.
func (c *plainCall) ttl(unit int64) any {
	switch v := c.live(); {
	case v == nil:
		return int64(-2)
	case v.Expire == 0:
		return int64(-1)
	default:
		return (v.Expire - int64(c.now)/1000 + unit/2) / unit
	}
}

func (c *plainCall) kind() any {
	names := map[commands.Kind]string{commands.KindAbsent: "none", commands.KindHash: "hash", commands.KindZset: "zset",
		commands.KindString: "string", commands.KindOther: "list"}
	return Status(names[cmp.Or(c.live(), &Value{}).Kind])
}

// write sets a string, by the options with which the module replicates.
func (c *plainCall) write() any {
	v := &Value{Kind: commands.KindString, Text: c.args[1]}
	switch options := c.args[2:]; {
	case len(options) == 1 && strings.EqualFold(options[0], "KEEPTTL"):
		v.Expire = cmp.Or(c.live(), v).Expire
	case len(options) == 2 && strings.EqualFold(options[0], "PXAT"):
		v.Expire, _ = strconv.ParseInt(options[1], 10, 64)
	case len(options) > 0:
		return Error("ERR SET has no other options here than KEEPTTL and PXAT")
	}
	c.at(c.args[0]).keys[c.args[0]] = v
	return Status("OK")
}

// push makes a list without its elements: tests need a key of a type that no limiter has.
func (c *plainCall) push() any {
	if c.live() != nil {
		return Error("ERR RPUSH only makes new keys here")
	}
	c.at(c.args[0]).keys[c.args[0]] = &Value{Kind: commands.KindOther}
	return int64(1)
}

// elements adds or removes elements, each of so many words, and returns how many.
func (c *plainCall) elements(kind commands.Kind, words int) any {
	v := cmp.Or(c.live().Clone(), &Value{Kind: kind})
	if v.Kind != kind {
		return Error(commands.ErrWrongType.Text())
	}
	before := len(v.Fields) + len(v.Set)
	for element := range slices.Chunk(c.args[1:], words) {
		if len(element) < words {
			return wrongNumber(c.name)
		}
		switch c.name {
		case "HSET":
			v.SetField(element[0], element[1])
		case "HDEL":
			v.DropField(element[0])
		case "ZADD":
			score, err := strconv.ParseFloat(element[0], 64)
			if err != nil {
				return Error("ERR value is not a valid float")
			}
			v.Add(Member{score, element[1]})
		case "ZREM":
			v.Drop(element[0])
		}
	}
	if c.at(c.args[0]).keys[c.args[0]] = v; v.Empty() {
		delete(c.at(c.args[0]).keys, c.args[0])
	}
	n := int64(len(v.Fields) + len(v.Set) - before)
	return max(n, -n)
}

// scores returns the scores of some members, nil for others.
func (c *plainCall) scores() any {
	v := cmp.Or(c.live(), &Value{Kind: commands.KindZset})
	if v.Kind != commands.KindZset {
		return Error(commands.ErrWrongType.Text())
	}
	all := make([]any, len(c.args)-1)
	for _, m := range v.Set {
		if i := slices.Index(c.args[1:], m.Text); i >= 0 {
			all[i] = strconv.FormatFloat(m.Score, 'f', -1, 64)
		}
	}
	return all
}

// config reads and sets the configuration of the module.
func (c *plainCall) config() any {
	verb, name := strings.ToUpper(c.args[0]), strings.ToLower(c.args[1])
	value, known := c.settings[name]
	switch {
	case verb == "GET" && len(c.args) == 2 && known:
		return []any{c.args[1], value}
	case verb == "SET" && len(c.args) == 3 && known:
		if err := c.set(name, c.args[2]); err != nil {
			return Error("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + err.Error())
		}
		return Status("OK")
	}
	return Error("ERR CONFIG has only GET and SET here, of gothrottle.policies and gothrottle.top-keys")
}

// set sets a setting of the module.
func (s *Server) set(name, value string) error {
	engine := s.shards[0].engine
	s.together = true
	if name == "gothrottle.policies" {
		p, err := commands.ParsePolicies(value)
		if err != nil {
			return err
		}
		engine.UsePolicies(p)
		s.settings[name] = value
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("argument couldn't be parsed into an integer")
	}
	if n < 0 || n > commands.MaxTopKeys {
		return fmt.Errorf("argument must be between 0 and %d inclusive", commands.MaxTopKeys)
	}
	engine.CountDenials(commands.NewDenials(n))
	s.settings[name] = value
	return nil
}
