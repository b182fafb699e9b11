// Package xds receives rules from a management server, such as Envoy Gateway, as envoyproxy/ratelimit does: all resources
// ratelimit.config.ratelimit.v3.RateLimitConfig, over an aggregated stream of the state of the world.
package xds

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	client "github.com/envoyproxy/go-control-plane/pkg/client/sotw/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"gothrottle/gateway/internal/rules"
)

// Options say where rules come from.
type Options struct {
	Server         string // host:port
	Node           *core.Node
	Headers        metadata.MD
	Credentials    func() (credentials.TransportCredentials, error) // for each connection, so renewed certificates are used
	MaxMessage     int                                              // bytes
	First, Longest time.Duration                                    // between two connections: twice as long each time
}

// Receive passes all rules to load, with their version, when they come, until the context ends, and connects again after an error. The server
// gets load's error as the reason why its rules are refused. away reports why no rules can come, nil once they can.
func (o *Options) Receive(ctx context.Context, load func(version string, files []rules.File, err error) error, away func(error), log *slog.Logger) {
	for pause := o.First; ; pause = min(2*pause, o.Longest) {
		err := o.stream(ctx, load, func() {
			pause = o.First
			away(nil)
		})
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRefused) {
			continue
		}
		away(err)
		wait := pause/2 + rand.N(pause/2+1)
		log.Warn("the xDS server is unavailable: the rules stay as they are", "server", o.Server, "again in", wait, "error", err)
		time.Sleep(wait)
	}
}

// errRefused ends a stream whose last rules were refused.
var errRefused = errors.New("the rules are refused")

// stream asks for the rules over one connection. The first request of a stream names no version: a server that has
// restarted may give an old name to new rules. A server that goes back to the rules before those that were refused says nothing,
// because they were accepted: so after a time another stream asks.
func (o *Options) stream(ctx context.Context, load func(version string, files []rules.File, err error) error, came func()) error {
	creds, err := o.Credentials()
	if err != nil {
		return err
	}
	var version version
	conn, err := grpc.NewClient(o.Server, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessage)),
		grpc.WithStreamInterceptor(version.intercept),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute})) // servers refuse more than one in 5 minutes
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(metadata.NewOutgoingContext(ctx, o.Headers))
	defer cancel(nil)
	again := time.AfterFunc(math.MaxInt64, func() { cancel(errRefused) })
	defer again.Stop()
	ads := client.NewADSClient(ctx, o.Node, resource.RateLimitConfigType)
	if err := ads.InitConnect(conn); err != nil {
		return err
	}
	for refused := ""; ; {
		r, err := ads.Fetch()
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		again.Stop()
		came()
		files, err := Files(r.Resources)
		if err = load(version.text, files, err); err == nil {
			refused, _ = "", ads.Ack() // its error is Fetch's
			continue
		}
		if refused == err.Error() { // go-control-plane sends them again at once, without end
			time.Sleep(o.First)
		}
		again.Reset(o.Longest)
		refused, _ = err.Error(), ads.Nack(err.Error())
	}
}

// version is that of the last response, which go-control-plane's client keeps to itself.
type version struct {
	grpc.ClientStream
	text string
}

func (v *version) intercept(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, next grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := next(ctx, d, c, method, o...)
	v.ClientStream = stream
	return v, err
}

// RecvMsg notes the version of a response.
func (v *version) RecvMsg(m any) error {
	err := v.ClientStream.RecvMsg(m)
	if r, is := m.(*discovery.DiscoveryResponse); is {
		v.text = r.GetVersionInfo()
	}
	return err
}

// Files turns resources into files of rules, in the order of their names. JSON with the names of the protocol is what
// package rules reads.
func Files(resources []*anypb.Any) (files []rules.File, err error) {
	for _, one := range resources {
		var c config.RateLimitConfig
		if err := one.UnmarshalTo(&c); err != nil {
			return nil, err
		}
		name := "xds:" + cmp.Or(c.Name, c.Domain)
		c.Name = "" // is not a key of files
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&c)
		if err != nil {
			return nil, err
		}
		files = append(files, rules.File{Name: name, Text: string(text)})
	}
	slices.SortFunc(files, func(a, b rules.File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}
