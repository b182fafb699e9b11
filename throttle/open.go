package throttle

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Open returns a Client of a server, with a go-redis client of its own, which Close closes. Most programs should use
// it. It does not connect; Check does. The address is one of go-redis:
//
//	redis://user:password@host:6379/0                      one server; rediss:// for TLS
//	redis://host:7000?addr=host2:7000                      a cluster
//	redis://host:26379?master_name=name&addr=host2:26379   the master that Sentinels know by this name
//	unix:///run/redis.sock                                 a socket
//
// Programs that need other settings of go-redis, such as certificates, use New.
func Open(address string, with ...Option) (*Client, error) {
	rdb, err := dial(address)
	if err != nil {
		return nil, err
	}
	c, err := New(rdb, with...)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	c.own = rdb
	return c, nil
}

// tries is how often a call tries to connect. Its error then says why, and not only that its time was over: go-redis
// would wait for longer than most calls may take, and try again.
const tries = 1

// dial makes a client of go-redis whose calls end with their contexts. Its errors have no part of the address, in which
// a password may be.
func dial(address string) (redis.UniversalClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, params("the address isn't a URL such as redis://127.0.0.1:6379")
	}
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, wrongAddress(err)
		}
		o.ContextTimeoutEnabled, o.DialerRetries = true, cmp.Or(o.DialerRetries, tries)
		o.MaxRetries = cmp.Or(o.MaxRetries, -1) // of the questions to Sentinels: the next call asks all of them again
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, wrongAddress(err)
		}
		o.ContextTimeoutEnabled, o.DialerRetries = true, cmp.Or(o.DialerRetries, tries)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, wrongAddress(err)
	}
	o.ContextTimeoutEnabled, o.DialerRetries = true, cmp.Or(o.DialerRetries, tries)
	return redis.NewClient(o), nil
}

func wrongAddress(err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "redis: "), ":")
	return fmt.Errorf("%w: the address: %s", ErrParams, text)
}
