package wire

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"gothrottle/script"
)

// address returns what a call sends: its own words, or those that call the script.
func (c *Conn) address(words, more []any) []any {
	if c.sha != nil && strings.HasPrefix(words[0].(string), "GO.") {
		return c.byScript(words, more)
	}
	return words
}

// byScript returns the words that call the script.
func (c *Conn) byScript(words, more []any) []any {
	all := make([]any, 0, 3+len(words)+len(more))
	all = append(append(all, "EVALSHA", c.sha, 1+len(more), words[1]), more...)
	return append(append(all, words[0]), words[2:]...)
}

// text makes EVAL of words that call the script.
func text(words []any) []any {
	words = slices.Clone(words)
	words[0], words[1] = "EVAL", script.Text
	return words
}

// sendText sends a call again that was not run, because the server didn't know the script: EVAL makes it known. One call of a
// lane at a time sends the text. The others wait, and try EVALSHA once more. texts is how many had ended before the call.
func (l *lane) sendText(c *Conn, cmd *call, texts int64) error {
	words := cmd.Args()
	l.mu.Lock()
	loading := l.loading
	first := loading == nil && l.texts.Load() == texts
	if first {
		l.loading = make(chan struct{})
		defer l.loaded(l.loading)
	}
	l.mu.Unlock()
	if loading != nil {
		if err := cmd.within.await(loading); err != nil {
			return err
		}
	}
	if !first {
		cmd.set(words)
		if err := l.send(c, cmd); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return err
		}
	}
	cmd.set(text(words))
	return l.send(c, cmd)
}

// loaded lets the calls go on that wait for the end of an EVAL.
func (l *lane) loaded(loading chan struct{}) {
	l.mu.Lock()
	l.loading = nil
	l.texts.Add(1)
	l.mu.Unlock()
	close(loading)
}

// slots is the number of hash slots of a cluster.
const slots = 16384

// keyAt returns a key of this master of a cluster that begins like key: "" if there is none.
func (c *Conn) keyAt(ctx context.Context, node *redis.Client, key string) string {
	cluster, ok := c.rdb.(cluster)
	if !ok {
		return key
	}
	for i := range slots {
		one := key + strconv.Itoa(i)
		if master, err := cluster.MasterForKey(ctx, one); err == nil && master.Options().Addr == node.Options().Addr {
			return one
		}
	}
	return ""
}

// checkScript looks at a key through the script, once by EVAL, and says in the log that the script decides.
func (c *Conn) checkScript(ctx context.Context, rdb Processor, key string) error {
	if key == "" { // the master has no slot for a key of this client
		return nil
	}
	words := c.byScript([]any{"GO.THROTTLE_RO", key, 0, 1, 1}, nil)
	if err := Classify(rdb.Process(ctx, newCall(within{Context: ctx, caller: ctx}, text(words)))); err != nil {
		return err
	}
	err := setUp(ctx, rdb, func(_ any, err error) error { return err }, words...)
	if node, one := rdb.(interface{ Options() *redis.Options }); one && err == nil {
		c.logger.Info("throttle: the script decides", "server", node.Options().Addr)
	}
	return err
}
