package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// service is the rate limit service: version 3 of Envoy's protocol, and what the HTTP endpoints ask.
type service struct {
	pb.UnimplementedRateLimitServiceServer
	*settings
	engine  *engine
	metrics *metrics
	log     *slog.Logger
	files   []file // that were read last
	rules   atomic.Pointer[rules]
	alive   *health.Server
	refusal atomic.Pointer[error] // why the server refuses this program: nil if it does not, or is away
}

// A request has at most this many descriptors, and a descriptor as many entries. A message has at most maxMessage bytes,
// gRPC's default: Envoy admits a request whose message is refused.
const (
	maxDescriptors = 128
	maxEntries     = 32
	maxMessage     = 4 << 20
)

// settleKey marks a descriptor whose hits have happened already: they are charged past the limit if need be. The entry
// isn't part of the descriptor that rules match.
const settleKey = "gothrottle.settle"

// ShouldRateLimit decides over a request of Envoy.
func (s *service) ShouldRateLimit(ctx context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	began := time.Now()
	asks, err := s.asks(req)
	if err != nil {
		s.metrics.refused.WithLabelValues("invalid").Inc()
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	response, _ := s.decide(ctx, asks)
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	s.metrics.took.Observe(time.Since(began).Seconds())
	return response, nil
}

// asks finds the limit of each descriptor.
func (s *service) asks(req *pb.RateLimitRequest) ([]ask, error) {
	n := len(req.GetDescriptors())
	switch {
	case req.GetDomain() == "":
		return nil, errors.New("rate limit domain must not be empty")
	case n == 0:
		return nil, errors.New("rate limit descriptor list must not be empty")
	case n > maxDescriptors:
		return nil, fmt.Errorf("%d descriptors: at most %d", n, maxDescriptors)
	}
	asks := make([]ask, n)
	d := s.rules.Load().domains[req.GetDomain()]
	if d == nil {
		s.metrics.refused.WithLabelValues("no_domain").Inc()
		return asks, nil
	}
	for i, descriptor := range req.GetDescriptors() {
		a := &asks[i]
		entries := descriptor.GetEntries()
		if len(entries) > maxEntries {
			return nil, fmt.Errorf("a descriptor of %d entries: at most %d", len(entries), maxEntries)
		}
		if last := len(entries) - 1; last >= 0 && entries[last].GetKey() == settleKey {
			entries, a.settle = entries[:last], true
		}
		if own := descriptor.GetLimit(); own != nil {
			var err error
			if a.found, err = s.overridden(d, entries, own); err != nil {
				return nil, err
			}
		} else {
			a.found = d.match(entries)
		}
		if a.limit != nil && a.limit.Algorithm == concurrency && a.holder == "" {
			return nil, fmt.Errorf("rule %s: the last entry names the holder of a slot, and is empty", a.label)
		}
		a.hits = hits(req, descriptor)
		a.settle = a.settle || a.limit != nil && a.limit.Late && a.hits > 0
	}
	return asks, nil
}

// hits returns what a descriptor costs: 1 unless the request says otherwise. Only a descriptor may say 0.
func hits(req *pb.RateLimitRequest, d *common.RateLimitDescriptor) int64 {
	n := max(1, int64(req.GetHitsAddend()))
	if own := d.GetHitsAddend(); own != nil {
		n = int64(min(own.GetValue(), maxHits))
	}
	if d.GetIsNegativeHits() {
		return -n
	}
	return n
}

// overridden is the limit that a request brings. It counts at the keys of fixed windows of the same unit.
func (s *service) overridden(d *domain, entries []*common.RateLimitDescriptor_Entry, own *common.RateLimitDescriptor_RateLimitOverride) (f found, err error) {
	unit := pb.RateLimitResponse_RateLimit_Unit(own.GetUnit())
	period := periods[unit.String()]
	if period == 0 {
		return f, fmt.Errorf("a limit of the request has the unit %s", unit)
	}
	f.key, f.tag = d.key(entries, nil)
	f.limit = &limit{
		path: d.name + ".override", units: int64(own.GetRequestsPerUnit()), period: period,
		limitLevel: limitLevel{Algorithm: fixedWindow, OnFailure: failOpen}, charge: d.tag == tagNone,
		reply: &pb.RateLimitResponse_RateLimit{RequestsPerUnit: own.GetRequestsPerUnit(), Unit: unit},
	}
	f.label, f.limit.bound = f.limit.path, newLimiter(s.engine.remote, f.limit)
	return f, nil
}

// dropReplaced takes the limits away that another limit of the request replaces, and those of rules without a limit.
func (s *service) dropReplaced(asks []ask) {
	var replaced []string
	for i := range asks {
		if asks[i].limit != nil {
			replaced = append(replaced, asks[i].limit.replaces...)
		}
	}
	for i := range asks {
		a := &asks[i]
		switch {
		case a.limit == nil:
		case a.limit.Unlimited:
			s.metrics.count(a, "unlimited")
			a.limit, a.unlimited = nil, true
		case a.limit.Name != "" && slices.Contains(replaced, a.limit.Name):
			a.limit = nil
		}
	}
}

// decide returns the statuses, the overall code and the headers, and which status the headers are about: the last one over
// its limit, else the one with the least left, -1 if there is none.
func (s *service) decide(ctx context.Context, asks []ask) (response *pb.RateLimitResponse, tightest int) {
	s.dropReplaced(asks)
	s.engine.decide(ctx, asks)
	response = &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: make([]*pb.RateLimitResponse_DescriptorStatus, len(asks))}
	tightest = -1
	least, over := uint32(math.MaxUint32), false
	for i := range asks {
		a, st := &asks[i], &pb.RateLimitResponse_DescriptorStatus{Code: pb.RateLimitResponse_OK}
		response.Statuses[i] = st
		if a.unlimited {
			st.LimitRemaining = math.MaxUint32
		}
		if a.limit == nil {
			continue
		}
		st.CurrentLimit, st.LimitRemaining = a.limit.reply, uint32(min(max(a.remaining, 0), math.MaxUint32))
		if a.limit.units == 0 {
			st.LimitRemaining = 0
		}
		st.DurationUntilReset = &durationpb.Duration{Seconds: a.untilReset()}
		s.metrics.decided(a)
		if st.LimitRemaining < least {
			tightest, least = i, st.LimitRemaining
		}
		if a.over && !a.limit.shadow && !a.limit.quota && !s.quotaMode {
			st.Code = pb.RateLimitResponse_OVER_LIMIT
			tightest, least, over = i, 0, true
		}
	}
	if over && !s.shadowMode {
		response.OverallCode = pb.RateLimitResponse_OVER_LIMIT
	}
	if s.headers && tightest >= 0 {
		response.ResponseHeadersToAdd = s.responseHeaders(response.Statuses[tightest])
	}
	return response, tightest
}

// untilReset returns whole seconds, rounded up.
func (a *ask) untilReset() int64 {
	if a.reset > 0 {
		return int64((a.reset + time.Second - 1) / time.Second)
	}
	if a.limit.Algorithm != fixedWindow {
		return 0
	}
	period := int64(a.limit.period / time.Second)
	return period - time.Now().Unix()%period
}

func (s *service) responseHeaders(st *pb.RateLimitResponse_DescriptorStatus) []*core.HeaderValue {
	return []*core.HeaderValue{
		{Key: s.limitHeader, Value: strconv.FormatUint(uint64(st.CurrentLimit.RequestsPerUnit), 10)},
		{Key: s.remainingHeader, Value: strconv.FormatUint(uint64(st.LimitRemaining), 10)},
		{Key: s.resetHeader, Value: strconv.FormatInt(st.DurationUntilReset.Seconds, 10)},
	}
}
