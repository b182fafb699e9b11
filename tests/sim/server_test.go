package sim

import (
	"fmt"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// server is the keys of one node. It replicates plain commands, and does those that another node replicates.
type server struct{ *corpus.Memory }

func newServer() *server { return &server{corpus.NewMemory()} }

// apply does what another node replicates. An expired key stays until it is deleted.
func (s *server) apply(words ...string) error {
	if _, err := s.Do(0, words...); err != nil {
		return fmt.Errorf("%q: %w", words, err)
	}
	return nil
}

// clone returns a server with the same keys, as a full synchronisation makes one.
func (s *server) clone() *server {
	c := newServer()
	for _, key := range s.Keys() {
		c.Put(key, s.Get(key))
	}
	return c
}

// expiry returns when a key expires, in ms since the Unix epoch: 0 if it has no expiry, -1 if there is no key.
func (s *server) expiry(key string) int64 {
	if v := s.Get(key); v != nil {
		return v.Expire
	}
	return -1
}

// state writes what a key holds.
func (s *server) state(key string) string {
	return corpus.Dump(map[string]*memory.Value{key: s.Get(key)}, 0)
}
