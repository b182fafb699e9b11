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
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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

const typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Receive passes all rules to load when they come, until the context ends, and connects again after an error. The server
// gets load's error as the reason why its rules are refused. away reports why no rules can come, nil once they can.
func (o *Options) Receive(ctx context.Context, load func([]rules.File, error) error, away func(error), log *slog.Logger) {
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
		log.Warn("the xDS server is away: the rules stay as they are", "server", o.Server, "again in", wait, "error", err)
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// errRefused ends a stream whose last rules were refused.
var errRefused = errors.New("the rules are refused")

// stream asks for the rules over one connection. The first request of a stream names no version: a server that has
// restarted may give an old name to new rules. A server that goes back to the rules before those that were refused says nothing,
// because they were accepted: so after a time another stream asks.
func (o *Options) stream(ctx context.Context, load func([]rules.File, error) error, came func()) error {
	creds, err := o.Credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(o.Server, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute})) // servers refuse more than one in 5 minutes
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	again := time.AfterFunc(math.MaxInt64, func() { cancel(errRefused) })
	defer again.Stop()
	ads, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(metadata.NewOutgoingContext(ctx, o.Headers))
	if err != nil {
		return err
	}
	req, refused := &discovery.DiscoveryRequest{Node: o.Node, TypeUrl: typeURL}, ""
	for {
		_ = ads.Send(req) // its error is Recv's
		r, err := ads.Recv()
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		req.ResponseNonce = r.GetNonce()
		if req.ErrorDetail != nil && r.GetVersionInfo() == refused { // go-control-plane sends it again at once, without end
			sleep(ctx, o.First)
			continue
		}
		again.Stop()
		came()
		req.ErrorDetail = nil
		files, err := Files(r.GetResources())
		if err = load(files, err); err != nil {
			refused = r.GetVersionInfo()
			again.Reset(o.Longest)
			req.ErrorDetail = status.New(codes.InvalidArgument, err.Error()).Proto()
		} else {
			req.VersionInfo = r.GetVersionInfo()
		}
	}
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
