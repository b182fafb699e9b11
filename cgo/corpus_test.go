package cgo_test

// This file makes the server made of C a host of the transcripts.

import (
	"errors"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// The module replies and replicates what the transcripts say, and its events and signals match what it replicates.
func TestCorpus(t *testing.T) {
	h := loaded(t)
	t.Cleanup(func() { h.Restart(h.Now()) }) // other tests begin in 2100
	corpus.Run(t, &corpusHost{t: t, h: h}, "../tests/corpus", corpus.Options{})
}

// corpusHost is the server made of C as a host of the transcripts.
type corpusHost struct {
	t *testing.T
	h *fakehost.Host
}

func (c *corpusHost) Begin(now int64) {
	for _, key := range c.h.Names() {
		c.h.Delete(key)
	}
	c.h.Restart(now)
	if text := c.h.ConfigSet("gothrottle.policies", ""); text != "" {
		c.t.Error(text)
	}
	c.h.Call("GO.TOP", "RESET")
}

func (c *corpusHost) Clock(now int64) { c.h.Advance(now - c.h.Now()) }

func (c *corpusHost) Call(words []string) (any, [][]string) {
	if name := words[0]; !strings.HasPrefix(name, "GO.") && !strings.HasPrefix(name, "CL.") {
		return c.plain(words), nil
	}
	keys := c.h.Names()
	r := copyOf(c.h, keys...)
	reply := c.h.Call(words...)
	for _, effect := range c.h.Effects() {
		keys = append(keys, effect[1])
	}
	r.follow(c.t, c.h, strings.Join(words, " "), keys...)
	return reply, c.h.Effects()
}

// plain runs one of the server's own commands on a copy in package memory, which then is what the server holds.
func (c *corpusHost) plain(words []string) any {
	if words[0] == "CONFIG" {
		if text := c.h.ConfigSet(words[2], words[3]); text != "" {
			return errors.New(text)
		}
		return "OK"
	}
	s := memory.NewServer()
	values, _ := c.Values(c.h.Names())
	for key, v := range values {
		s.Put(key, v)
		c.h.Delete(key)
	}
	reply, err := s.Do(0, words...)
	if err != nil {
		c.t.Fatalf("%q: %v", words, err)
	}
	for _, key := range s.Keys() {
		c.h.Put(key, s.Get(key))
	}
	return reply
}

func (c *corpusHost) Values(keys []string) (map[string]*memory.Value, int) {
	return valuesOf(c.h, keys...), len(c.h.Names())
}
