package main

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// foreign follows a command that is not one of the module's. The reply tells whether the key was
// there. foreign returns what is wrong with the reply, "" if nothing is.
func (m *model) foreign(db int, words []string, reply string) string {
	name, key := strings.ToUpper(words[0]), ""
	if len(words) > 1 {
		key = words[1]
	}
	switch name {
	case "SWAPDB":
		m.dbs[0], m.dbs[1] = m.dbs[1], m.dbs[0]
		return ""
	case "FLUSHALL":
		m.clear()
		return ""
	case "FLUSHDB":
		m.dbs[db] = map[string]*entry{}
		return ""
	}
	e := m.at(db, key)
	known := e != nil && e.kind != 'u'
	there := known && !m.void(e)
	failed := strings.HasPrefix(reply, "-")
	absent := func() string {
		if there {
			return fmt.Sprintf("%s should be there, but the reply is %s", key, reply)
		}
		delete(m.dbs[db], key)
		return ""
	}
	switch name {
	case "DEL", "UNLINK", "GETDEL":
		if reply == "0" && there {
			return absent()
		}
		if !failed {
			delete(m.dbs[db], key)
		}
	case "SET":
		if !failed {
			m.dbs[db][key] = stringEntry(words[2])
		}
	case "PERSIST", "EXPIRE", "PEXPIREAT":
		if reply == "0" && name != "PERSIST" {
			return absent()
		}
		if e == nil && reply == "1" {
			return "an absent key got an expiry"
		}
		if e != nil && reply == "1" {
			m.userExpiry(e, name, words)
			if e.expire > 0 && e.expire <= int64(m.wall/1000) { // the server deletes such a key at once
				delete(m.dbs[db], key)
			}
		}
	case "RENAME":
		if failed {
			return absent()
		}
		delete(m.dbs[db], key)
		m.put(db, words[2], e)
	case "COPY", "MOVE":
		return m.copied(db, name, words, e, reply, there)
	case "LPUSH", "HSET", "ZADD":
		m.typed(db, name, key, e, failed)
	case "HDEL":
		switch {
		case e == nil || failed:
		case e.kind == 'f' && e.typ == "hash": // it had that field only
			delete(m.dbs[db], key)
		default:
			e.tainted = false
		}
	case "HINCRBY", "APPEND", "ZREM", "HPEXPIRE", "SETRANGE", "RESTORE":
		if !failed && (name != "HPEXPIRE" || e != nil) {
			m.forget(db, key)
		}
	}
	return ""
}

var adoptedForm = regexp.MustCompile(`^[1-9][0-9]{18}$`)

// stringEntry is what a key holds after SET.
func stringEntry(value string) *entry {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && adoptedForm.MatchString(value) {
		e := newEntry('t')
		e.adopted, e.free = true, true
		e.cells = []*oracle.Throttle{oracle.NewThrottle(big.NewRat(n, 1), funnel.Rate{})}
		return e
	}
	return &entry{kind: 'f', typ: "string", free: true}
}

func (m *model) userExpiry(e *entry, name string, words []string) {
	e.expire, e.free = 0, true
	switch n := int64(0); name {
	case "EXPIRE":
		n, _ = strconv.ParseInt(words[2], 10, 64)
		e.expire = int64(m.wall/1000) + n*1000
	case "PEXPIREAT":
		e.expire, _ = strconv.ParseInt(words[2], 10, 64)
	}
	if e.expire > 0 {
		e.free = false
	}
}

// put makes a key hold what another one held.
func (m *model) put(db int, name string, e *entry) {
	if e == nil {
		m.forget(db, name) // the other key held a limiter with nothing in use
		return
	}
	m.dbs[db][name] = e
}

// copied follows COPY key other REPLACE and MOVE key db.
func (m *model) copied(db int, name string, words []string, e *entry, reply string, there bool) string {
	to, other := db, words[2]
	if name == "MOVE" {
		to, other = 1-db, words[1]
	}
	target := m.at(to, other)
	switch {
	case reply == "0" && there && (name == "COPY" || target == nil):
		return fmt.Sprintf("%s should be there, but the reply is 0", words[1])
	case reply == "1" && name == "MOVE" && target != nil && target.kind != 'u' && !m.void(target):
		return fmt.Sprintf("MOVE replaced %s", other)
	case reply == "1" && name == "MOVE":
		delete(m.dbs[db], words[1])
		m.put(to, other, e)
	case reply == "1":
		if e != nil {
			e = e.clone()
		}
		m.put(to, other, e)
	}
	return ""
}

// typed follows a command that adds a foreign element to a value.
func (m *model) typed(db int, name, key string, e *entry, failed bool) {
	typ := map[string]string{"LPUSH": "list", "HSET": "hash", "ZADD": "zset"}[name]
	switch {
	case failed:
	case e == nil:
		m.dbs[db][key] = &entry{kind: 'f', typ: typ, free: true}
	case e.kind == 'f':
	case e.kind == 't' && name == "HSET" && !m.void(e) && !e.adopted:
		e.tainted = true
	case m.void(e) && name == "LPUSH":
		m.dbs[db][key] = &entry{kind: 'f', typ: typ, free: true}
	default:
		m.forget(db, key)
	}
}

// steppedBack says that the server's clock was set back. A key whose expiry was past may be gone or
// not.
func (m *model) steppedBack(wall funnel.Micros) {
	for db := range m.dbs {
		for name, e := range m.dbs[db] {
			if e.expire > 0 && e.expire <= int64(m.wall/1000)+1+m.blur {
				m.forget(db, name)
			}
		}
	}
	m.wall = wall
}
