// Package serve answers over gRPC and HTTP, and counts what it answers.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
)

// Options of a Service.
type Options struct {
	Near     float64  // the share of a limit from which the limit is near
	Quota    bool     // all descriptors are quotas
	GroupBy  []string // keys of descriptors: quotas with the same values of them are one group
	Metadata bool     // add the request and the metadata of its rules to responses
	Headers  bool     // add these headers to responses
	Top      bool     // /top shows the keys that are denied most often

	Limit, Remaining, Reset string
}

// Service is the rate limit service: version 3 of Envoy's protocol, and what the HTTP endpoints ask.
type Service struct {
	pb.UnimplementedRateLimitServiceServer
	Options
	Rules   atomic.Pointer[rules.Set]
	Health  *health.Server
	Stale   func(why error) // the rules may be older than they should be; nil: they aren't
	Away    func(why error) // the server does not decide; nil: it does
	engine  *engine.Engine
	metrics *metrics
}

// New returns a Service without rules.
func New(o Options, e *engine.Engine) *Service {
	s := &Service{Options: o, Health: health.NewServer(), engine: e, metrics: newMetrics(o.Near)}
	s.metrics.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: space, Name: "local_keys_dropped_total",
		Help: "Keys that on_failure: local counted and that began again, because there were more than LOCAL_KEYS."}, func() float64 { return float64(e.Memory.Dropped()) }))
	s.Stale = s.metrics.gauge("rules_stale", "1: newer rules were refused, or the xDS server is unavailable.")
	s.Away = s.metrics.gauge("server_away", "1: Redis or Valkey does not answer, or refuses the gateway.")
	s.Rules.Store(&rules.Set{})
	s.Ready(true)
	return s
}

// Ready notes whether the service is ready.
func (s *Service) Ready(ready bool) {
	status := healthpb.HealthCheckResponse_SERVING
	if !ready {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	s.Health.SetServingStatus("", status)
	s.Health.SetServingStatus("ratelimit", status) // the name that envoyproxy/ratelimit has
}

// A request has at most this many descriptors. A message has at most MaxMessage bytes, gRPC's default: Envoy admits a request
// whose message is refused.
const (
	maxDescriptors = 128
	MaxMessage     = 4 << 20
)

// settleKey marks a descriptor whose hits have happened already: they are charged past the limit if need be. The entry
// isn't part of the descriptor that rules match.
const settleKey = "gothrottle.settle"

// ShouldRateLimit decides over a request of Envoy.
func (s *Service) ShouldRateLimit(ctx context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	began := time.Now()
	if s.Rules.Load().Domains == nil {
		s.metrics.refused.WithLabelValues("no_rules").Inc()
		return nil, status.Error(codes.Unavailable, "no rules have been loaded yet")
	}
	asks, err := s.asks(req)
	if err != nil {
		s.metrics.refused.WithLabelValues("invalid").Inc()
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	response, _ := s.decide(ctx, asks, len(req.GetDescriptors()))
	if s.Metadata {
		response.DynamicMetadata = dynamicMetadata(req, response, asks)
	}
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	took := time.Since(began).Seconds()
	s.metrics.took.WithLabelValues("grpc").Observe(took)
	s.metrics.theirTook.Observe(took)
	s.metrics.theirCalls.Inc()
	return response, nil
}

// asks finds the limits of each descriptor: the first ones in the order of the descriptors, then what else a list has.
func (s *Service) asks(req *pb.RateLimitRequest) ([]engine.Ask, error) {
	n := len(req.GetDescriptors())
	switch {
	case req.GetDomain() == "":
		return nil, errors.New("rate limit domain must not be empty")
	case n == 0:
		return nil, errors.New("rate limit descriptor list must not be empty")
	case n > maxDescriptors:
		return nil, fmt.Errorf("%d descriptors: at most %d", n, maxDescriptors)
	}
	asks := make([]engine.Ask, n)
	d := s.Rules.Load().Domains[req.GetDomain()]
	if d == nil {
		s.metrics.refused.WithLabelValues("no_domain").Inc()
		return asks, nil
	}
	for i, descriptor := range req.GetDescriptors() {
		a := &asks[i]
		entries := descriptor.GetEntries()
		if len(entries) > rules.MaxEntries {
			return nil, fmt.Errorf("a descriptor of %d entries: at most %d", len(entries), rules.MaxEntries)
		}
		if last := len(entries) - 1; last >= 0 && entries[last].GetKey() == settleKey {
			entries, a.Settle = entries[:last], true
		}
		if own := descriptor.GetLimit(); own != nil {
			var err error
			if a.Found, err = d.Override(entries, own); err != nil {
				return nil, err
			}
		} else {
			a.Found = d.Match(entries)
		}
		if a.Limit != nil && a.Algorithm == rules.Concurrency && a.Holder == "" {
			return nil, fmt.Errorf("rule %s: the last entry names the holder of a slot, and is empty", a.Label)
		}
		a.Hits, a.Group = hits(req, descriptor), s.group(entries)
		for _, f := range a.Also {
			asks = append(asks, engine.Ask{Found: f, Hits: a.Hits, Settle: a.Settle || f.Late && a.Hits > 0, Of: i})
		}
		a = &asks[i] // which append may have moved
		a.Settle = a.Settle || a.Limit != nil && a.Late && a.Hits > 0
	}
	return asks, nil
}

// group names the group of a descriptor's quota, "" if it is alone.
func (s *Service) group(entries rules.Descriptor) (name string) {
	for _, e := range entries {
		if slices.Contains(s.GroupBy, e.GetKey()) {
			name += strconv.Quote(e.GetKey()) + strconv.Quote(e.GetValue())
		}
	}
	return name
}

// hits returns what a descriptor costs: 1 unless the request says otherwise. Only a descriptor may say 0.
func hits(req *pb.RateLimitRequest, d *common.RateLimitDescriptor) int64 {
	n := max(1, int64(req.GetHitsAddend()))
	if own := d.GetHitsAddend(); own != nil {
		n = int64(min(own.GetValue(), engine.MaxHits))
	}
	if d.GetIsNegativeHits() {
		return -n
	}
	return n
}

// decide returns the statuses, the overall code and the headers, and which status the headers are about: the last one over
// its limit, else the one with the least left, -1 if there is none. A status of which nobody has counted the numbers has none.
// There are n statuses: that of an ask beyond is its descriptor's if it is the tighter one.
func (s *Service) decide(ctx context.Context, asks []engine.Ask, n int) (response *pb.RateLimitResponse, tightest int) {
	s.engine.Decide(ctx, asks)
	response = &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: make([]*pb.RateLimitResponse_DescriptorStatus, n)}
	for i := range asks {
		if st := s.status(&asks[i]); i < n {
			response.Statuses[i] = st
		} else if of := &response.Statuses[asks[i].Of]; tighter(st, *of) {
			*of = st
		}
	}
	tightest = -1
	least, over, quotas := uint32(math.MaxUint32), false, map[string]bool{} // whether one quota of a group is exceeded
	for i, st := range response.Statuses {
		a := &asks[i]
		refuses := st.Code == pb.RateLimitResponse_OVER_LIMIT
		if !a.Unlimited && (s.Quota || a.Limit != nil && a.Quota) {
			group := cmp.Or(a.Group, strconv.Itoa(i))
			quotas[group], refuses = quotas[group] || refuses, false
		}
		over = over || refuses
		switch {
		case st.CurrentLimit == nil:
		case refuses:
			tightest, least = i, 0
		case st.LimitRemaining < least:
			tightest, least = i, st.LimitRemaining
		}
	}
	exceeded := len(quotas) > 0 && !slices.Contains(slices.Collect(maps.Values(quotas)), false)
	if (over || exceeded) && !s.engine.Shadow {
		response.OverallCode = pb.RateLimitResponse_OVER_LIMIT
	}
	if s.Headers && tightest >= 0 {
		response.ResponseHeadersToAdd = s.responseHeaders(response.Statuses[tightest])
	}
	if by := fallback(asks); s.Headers && by != "" {
		response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd, &core.HeaderValue{Key: fallbackHeader, Value: by})
	}
	return response, tightest
}

// tighter says whether a status is tighter than another one of its descriptor: it refuses or, if both do or none, less is left.
func tighter(st, than *pb.RateLimitResponse_DescriptorStatus) bool {
	if st.Code != than.Code {
		return st.Code == pb.RateLimitResponse_OVER_LIMIT
	}
	return st.CurrentLimit != nil && (than.CurrentLimit == nil || st.LimitRemaining < than.LimitRemaining)
}

// status says what was decided, and counts it.
func (s *Service) status(a *engine.Ask) *pb.RateLimitResponse_DescriptorStatus {
	st := &pb.RateLimitResponse_DescriptorStatus{Code: pb.RateLimitResponse_OK}
	switch {
	case a.Unlimited:
		st.LimitRemaining = math.MaxUint32
	case a.Limit == nil:
		return st
	default:
		if a.Counted() {
			st.CurrentLimit, st.DurationUntilReset = a.Reply, &durationpb.Duration{Seconds: untilReset(a)}
		}
		if a.Counted() && a.Units > 0 {
			st.LimitRemaining = uint32(min(max(a.Remaining, 0), math.MaxUint32))
		}
		if a.Over && !a.Shadow {
			st.Code = pb.RateLimitResponse_OVER_LIMIT
		}
	}
	s.metrics.decided(a)
	return st
}

// untilReset returns whole seconds, rounded up.
func untilReset(a *engine.Ask) int64 {
	left := a.Reset
	if now := time.Now(); left == 0 && a.Algorithm == rules.FixedWindow {
		left = a.WindowEnd(now).Sub(now)
	}
	return int64((left + time.Second - 1) / time.Second)
}

// fallbackHeader marks an answer that on_failure has decided, with its value.
const fallbackHeader = "Gothrottle-Fallback"

// fallback returns the on_failure that has decided: that of a limit that refuses, if one does; "" if the server has decided.
func fallback(asks []engine.Ask) (by string) {
	for i := range asks {
		if a := &asks[i]; a.Fallback != "" && (by == "" || a.Over) {
			by = string(a.Fallback)
		}
	}
	return by
}

func (s *Service) responseHeaders(st *pb.RateLimitResponse_DescriptorStatus) []*core.HeaderValue {
	return []*core.HeaderValue{
		{Key: s.Limit, Value: strconv.FormatUint(uint64(st.CurrentLimit.RequestsPerUnit), 10)},
		{Key: s.Remaining, Value: strconv.FormatUint(uint64(st.LimitRemaining), 10)},
		{Key: s.Reset, Value: strconv.FormatInt(st.DurationUntilReset.Seconds, 10)},
	}
}

// dynamicMetadata is the request, and the metadata of rules that admit it, in the form of envoyproxy/ratelimit.
func dynamicMetadata(req *pb.RateLimitRequest, response *pb.RateLimitResponse, asks []engine.Ask) *structpb.Struct {
	all, descriptors, metadata := map[string]any{"domain": req.GetDomain()}, []any{}, map[string]any{}
	for i, d := range req.GetDescriptors() {
		entries := []any{}
		for _, e := range d.GetEntries() {
			entries = append(entries, e.GetKey()+"="+e.GetValue())
		}
		described := map[string]any{"entries": entries}
		if d.GetLimit() != nil {
			described["limit"] = d.GetLimit().String()
		}
		if n := d.GetHitsAddend(); n != nil {
			described["hitsAddend"] = n.GetValue()
		}
		descriptors = append(descriptors, described)
		if asks[i].Limit != nil && response.Statuses[i].Code == pb.RateLimitResponse_OK {
			metadata = merged(asks[i].Metadata, metadata)
		}
	}
	all["descriptors"] = descriptors
	if n := req.GetHitsAddend(); n > 0 {
		all["hitsAddend"] = n
	}
	if by := fallback(asks); by != "" {
		all["fallback"] = by
	}
	if len(metadata) > 0 {
		all["metadata"] = metadata
	}
	s, _ := structpb.NewStruct(all) // all texts are UTF-8, as gRPC and YAML have them
	return s
}

// merged is a mapping with what is over it: mappings in both are merged, too.
func merged(under, over map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, under)
	for k, v := range over {
		below, _ := under[k].(map[string]any)
		if inner, mapping := v.(map[string]any); mapping {
			v = merged(below, inner)
		}
		all[k] = v
	}
	return all
}
