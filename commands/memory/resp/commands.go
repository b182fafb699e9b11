package resp

import (
	"crypto/sha1"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/script"
)

const ok = memory.Status("OK")

// unprotected needs no password.
var unprotected = []string{"AUTH", "HELLO", "QUIT", "RESET"}

// greetings is what clients send when they connect, and what describes a server. A server that refuses other commands
// runs these.
var greetings = map[string]func(c *conn, args []string) any{
	"AUTH":       (*conn).auth,
	"CLIENT":     (*conn).client,
	"CLUSTER":    (*conn).clusterCommand,
	"COMMAND":    (*conn).command,
	"ECHO":       func(_ *conn, args []string) any { return strings.Join(args, " ") },
	"HELLO":      (*conn).hello,
	"INFO":       (*conn).info,
	"PING":       (*conn).ping,
	"PSUBSCRIBE": func(c *conn, args []string) any { return c.subscribe("psubscribe", args) },
	"QUIT":       func(c *conn, _ []string) any { c.quits = true; return ok },
	"READONLY":   func(*conn, []string) any { return ok },
	"READWRITE":  func(*conn, []string) any { return ok },
	"RESET":      (*conn).reset,
	"ROLE":       (*conn).role,
	"SCRIPT":     (*conn).scriptCommand,
	"SELECT":     (*conn).selects,
	"SENTINEL":   (*conn).sentinel,
	"SUBSCRIBE":  func(c *conn, args []string) any { return c.subscribe("subscribe", args) },
}

func wrongNumber(name string) memory.Error {
	return memory.Error("ERR wrong number of arguments for '" + name + "' command")
}

// word returns an argument in capitals, "" if there are fewer.
func word(args []string, i int) string {
	if i >= len(args) {
		return ""
	}
	return strings.ToUpper(args[i])
}

func (c *conn) auth(args []string) any {
	switch {
	case len(args) == 0 || len(args) > 2:
		return wrongNumber("auth")
	case c.o.Password == "":
		return memory.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case args[len(args)-1] != c.o.Password || len(args) == 2 && args[0] != "default":
		return memory.Error("WRONGPASS invalid username-password pair or user is disabled.")
	}
	c.known = true
	return ok
}

func (c *conn) hello(args []string) any {
	protocol := c.protocol
	if len(args) > 0 {
		var err error
		if protocol, err = strconv.Atoi(args[0]); err != nil || protocol != 2 && protocol != 3 {
			return memory.Error("NOPROTO unsupported protocol version")
		}
	}
	if word(args, 1) == "AUTH" && len(args) > 3 {
		if reply := c.auth(args[2:4]); reply != ok {
			return reply
		}
	}
	if !c.known {
		return memory.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	c.protocol = protocol
	mode := "standalone"
	if c.cluster != nil {
		mode = "cluster"
	} else if c.watches != nil {
		mode = "sentinel"
	}
	return memory.Map{"server", "redis", "version", version, "proto", int64(protocol), "id", int64(1), "mode", mode, "role", c.roleName(), "modules", []any{}}
}

// version is the one that the server says it has.
const version = "7.4.0"

func (c *conn) client(args []string) any {
	switch word(args, 0) {
	case "ID":
		return int64(1)
	case "GETNAME":
		return nil
	case "SETNAME", "SETINFO", "NO-EVICT", "NO-TOUCH":
		return ok
	}
	return memory.Error("ERR unknown subcommand '" + strings.Join(args, " ") + "'. Try CLIENT HELP.")
}

func (c *conn) ping(args []string) any {
	if len(args) > 0 {
		return args[0]
	}
	if f, _ := c.failing(); f.Error != "" {
		return memory.Error(f.Error)
	}
	return memory.Status("PONG")
}

// selects is SELECT. There is one database.
func (c *conn) selects(args []string) any {
	if word(args, 0) != "0" {
		return memory.Error("ERR DB index is out of range")
	}
	return ok
}

func (c *conn) reset([]string) any {
	c.protocol, c.known, c.multi, c.queue = 2, c.o.Password == "", false, nil
	return memory.Status("RESET")
}

func (c *conn) info([]string) any {
	loading, f := 0, Faults{}
	if f, _ = c.failing(); strings.HasPrefix(f.Error, "LOADING") {
		loading = 1
	}
	enabled := 0
	if c.cluster != nil {
		enabled = 1
	}
	return fmt.Sprintf("# Server\r\nredis_version:%s\r\n# Persistence\r\nloading:%d\r\n# Replication\r\nrole:%s\r\n# Cluster\r\ncluster_enabled:%d\r\n",
		version, loading, c.roleName(), enabled)
}

// command is COMMAND, COMMAND COUNT, DOCS and INFO: of the limiters' commands, and of the server's own that clients route.
func (c *conn) command(args []string) any {
	row := func(name string) any {
		f, _ := c.failing()
		switch r := commands.Find(name); {
		case r != nil && !f.NoModule:
			first := int64(1)
			if r.NoKey {
				first = 0
			}
			var flags []any
			for flag := range strings.FieldsSeq(r.Flags) {
				flags = append(flags, memory.Status(flag))
			}
			return []any{strings.ToLower(r.Name), int64(r.Arity), flags, first, first, first}
		case slices.Contains(plainWithKey, strings.ToUpper(name)):
			return []any{strings.ToLower(name), int64(-2), []any{}, int64(1), int64(1), int64(1)}
		case strings.HasPrefix(strings.ToUpper(name), "EVAL"):
			return []any{strings.ToLower(name), int64(-3), []any{memory.Status("movablekeys")}, int64(0), int64(0), int64(0)}
		}
		return nil
	}
	var names []string
	for i := range commands.Table {
		names = append(names, commands.Table[i].Name)
	}
	names = append(append(names, plainWithKey...), "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO")
	switch word(args, 0) {
	case "COUNT":
		return int64(len(names))
	case "DOCS":
		return memory.Map{}
	case "INFO":
		names = args[1:]
	}
	rows := []any{}
	for _, name := range names {
		if r := row(name); r != nil || len(args) > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// plainWithKey is the commands of the server itself that have keys; of those in keysLast all words are keys.
var (
	plainWithKey = []string{"DEL", "EXISTS", "UNLINK", "EXPIRE", "HDEL", "HSET", "PERSIST", "PEXPIRE", "PEXPIREAT", "PTTL", "RPUSH", "SET", "TTL", "TYPE", "ZADD", "ZMSCORE", "ZREM"}
	keysLast     = []string{"DEL", "EXISTS", "UNLINK"}
	readers      = []string{"EXISTS", "PTTL", "TTL", "TYPE", "ZMSCORE"}
)

// oneCall matches the scripts that only call a command: clients send those to the right node of a cluster.
var oneCall = regexp.MustCompile(`^\s*return redis\.call\('([\w.]+)', KEYS\[1\], unpack\(ARGV\)\)\s*$`)

// learn returns the sha1 of a script, which the server then knows. The server is locked.
func (s *Server) learn(text string) (sha string, known bool) {
	if strings.TrimSpace(text) != strings.TrimSpace(script.Text) && !oneCall.MatchString(text) { // $(cat FILE) has no last newline
		return "", false
	}
	sha = fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	s.scripts[sha] = text
	return sha, true
}

func (c *conn) scriptCommand(args []string) any {
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	switch word(args, 0) {
	case "LOAD":
		if len(args) == 2 {
			if sha, known := c.learn(args[1]); known {
				return sha
			}
		}
		return otherScript
	case "EXISTS":
		found := []any{}
		for _, s := range args[1:] {
			n := int64(0)
			if c.scripts[strings.ToLower(s)] != "" {
				n = 1
			}
			found = append(found, n)
		}
		return found
	case "FLUSH":
		clear(c.scripts)
		return ok
	}
	return memory.Error("ERR unknown subcommand. Try SCRIPT HELP.")
}

const otherScript = memory.Error("ERR this server in memory runs gothrottle.lua, and scripts that only return redis.call('COMMAND', KEYS[1], unpack(ARGV))")

// limiterCommand reports whether words call a limiter.
func limiterCommand(words []string) bool {
	return strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") || commands.Find(words[0]) != nil
}

// one runs a command that isn't a greeting. The server is locked.
func (c *conn) one(words []string) any {
	f := c.touching(c.faults)
	if f.Error != "" {
		return memory.Error(f.Error)
	}
	inner, refused := c.inner(words, f)
	if refused != nil {
		return refused
	}
	row := commands.Find(inner[0])
	keys := c.keys(row, inner)
	writes := row != nil && row.Writes() || len(keys) > 0 && row == nil && !slices.Contains(readers, strings.ToUpper(inner[0]))
	if c.cluster != nil {
		if err := c.cluster.elsewhere(c.Server, keys); err != nil {
			return err
		}
	}
	switch {
	case writes && f.Writes != "":
		return memory.Error(f.Writes)
	case writes && c.copyOf != nil:
		return memory.Error("READONLY You can't write against a read only replica.")
	}
	at := c.o.Now()
	c.catchUp(at)
	if strings.EqualFold(inner[0], "SCAN") {
		return c.scan(inner[1:])
	}
	reply, err := c.data.Do(c.now(), inner...)
	if err != nil {
		reply = err
	}
	if row != nil && c.o.Ran != nil {
		c.o.Ran(Run{at, c.Addr, inner, reply})
	}
	return reply
}

// inner returns the words of a limiter's command, also of one that is called by the script.
func (c *conn) inner(words []string, f Faults) (inner []string, refused any) {
	name := strings.ToUpper(words[0])
	unknown := memory.Error("ERR unknown command '" + words[0] + "', with args beginning with: ")
	switch {
	case !strings.HasPrefix(name, "EVAL"):
		if f.NoModule && commands.Find(name) != nil {
			return nil, unknown
		}
		return words, nil
	case f.NoScript || !slices.Contains([]string{"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"}, name):
		return nil, unknown
	case len(words) < 3:
		return nil, wrongNumber(strings.ToLower(name))
	}
	text := words[1]
	if strings.HasPrefix(name, "EVALSHA") {
		if text = c.scripts[strings.ToLower(text)]; text == "" {
			return nil, memory.Error("NOSCRIPT No matching script. Please use EVAL.")
		}
	} else if _, known := c.learn(text); !known {
		return nil, otherScript
	}
	if call := oneCall.FindStringSubmatch(text); call != nil && len(words) > 3 && words[2] == "1" {
		return c.inner(append([]string{call[1]}, words[3:]...), f)
	}
	inner, err := c.scriptWords(words)
	if err == nil && strings.HasSuffix(name, "_RO") && commands.Find(inner[0]).Writes() {
		err = memory.Error("ERR Write commands are not allowed from read-only scripts.")
	}
	if err != nil {
		return nil, err
	}
	return inner, nil
}

// scriptWords returns the words of the limiter's command that a call of the script makes, or an error.
func (c *conn) scriptWords(words []string) ([]string, error) {
	n, _ := strconv.Atoi(words[2])
	base := strings.TrimSuffix(word(words, 3+min(max(n, 0), len(words))), "_RO")
	inner, err := memory.ScriptWords(words)
	switch {
	case slices.Contains(moduleOnly, base):
		return nil, memory.Error("ERR " + base + " needs the module")
	case err != nil || commands.Find(inner[0]) == nil || n > 1 && (base != "GO.ALL" || !slices.Equal(c.data.KeysOf(inner), words[3:3+n])):
		return nil, memory.Error(fmt.Sprintf("ERR the script does not take the words %q", words[2:]))
	}
	return inner, nil
}

// moduleOnly is what the script lacks.
var moduleOnly = []string{"GO.POLICY", "GO.INFO", "GO.TOP", "GO.HELP"}

// keys returns the keys of a command.
func (c *conn) keys(row *commands.Command, words []string) []string {
	switch name := strings.ToUpper(words[0]); {
	case row != nil:
		return c.data.KeysOf(words)
	case len(words) < 2 || !slices.Contains(plainWithKey, name):
		return nil
	case slices.Contains(keysLast, name):
		return words[1:]
	}
	return words[1:2]
}
