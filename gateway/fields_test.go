package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"gothrottle/gateway/internal/xds"
)

// ignored are the fields of the protocol that the gateway neither reads nor sets. The page says why.
var ignored = []protoreflect.FullName{"envoy.service.ratelimit.v3.RateLimitResponse.quota", "envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus.quota",
	"envoy.service.ratelimit.v3.RateLimitResponse.request_headers_to_add", "envoy.service.ratelimit.v3.RateLimitResponse.raw_body", "envoy.config.core.v3.HeaderValue.raw_value"}

// observe returns what two requests leave behind (answers, keys, metrics) under rules in which each field counts, and the fields
// that the answers have.
func observe(t *testing.T, change func(c, req proto.Message)) (seen string, set map[protoreflect.FullName]bool) {
	bubble(t, func(t *testing.T) {
		s, c, req := inMemory(t), new(config.RateLimitConfig), new(pb.RateLimitRequest)
		g := inside(t, s, ours, "LIMIT_RESPONSE_HEADERS_ENABLED=true", "RESPONSE_DYNAMIC_METADATA=true")
		require.NoError(t, protojson.Unmarshal([]byte(`{"name": "n", "domain": "d", "descriptors": [
			{"key": "k", "metadata": {"team": "web"}, "rate_limit": {"unit": "DAY", "requests_per_unit": 5, "name": "few", "replaces": [{"name": "other"}]},
				"descriptors": [{"key": "below", "rate_limit": {"unit": "HOUR", "requests_per_unit": 7, "name": "other"}}]},
			{"key": "q", "quota_mode": true, "rate_limit": {"unit": "DAY", "requests_per_unit": 9}}]}`), c))
		require.NoError(t, protojson.Unmarshal([]byte(`{"domain": "d", "hits_addend": 3, "descriptors": [
			{"entries": [{"key": "k", "value": "a"}]}, {"entries": [{"key": "k"}, {"key": "below"}]}, {"entries": [{"key": "q"}]},
			{"entries": [{"key": "own"}], "limit": {"requests_per_unit": 9, "unit": "MINUTE", "unit_multiplier": 2}}]}`), req))
		change(c, req)
		resource, err := anypb.New(c)
		require.NoError(t, err)
		seen, set = fmt.Sprint(g.use(xds.Files([]*anypb.Any{resource})), g.page(t, g.debug+"/rules")), map[protoreflect.FullName]bool{}
		for range 2 {
			r, err := g.ShouldRateLimit(t.Context(), req)
			seen += fmt.Sprint(r, err, s.Memory().Keys())
			_ = protorange.Range(r.ProtoReflect(), func(at protopath.Values) error {
				if f := at.Index(-1).Step; f.Kind() == protopath.FieldAccessStep {
					set[f.FieldDescriptor().FullName()] = true
				}
				return nil
			})
		}
		seen += fmt.Sprint(counted.FindAllString(g.page(t, g.debug+"/metrics"), -1))
	})
	return seen, set
}

// alter clears the field in the first message of m that may have it, or sets it.
func alter(m proto.Message, f protoreflect.FieldDescriptor) {
	_ = protorange.Options{Stable: true}.Range(m.ProtoReflect(), func(at protopath.Values) error {
		in, is := at.Index(-1).Value.Interface().(protoreflect.Message)
		if !is || in.Descriptor() != f.ContainingMessage() {
			return nil
		}
		had := in.Has(f)
		in.Clear(f)
		for _, value := range []string{`"x"`, "true", "7", "{}"} { // one is of its type
			if other := in.New().Interface(); !had && protojson.Unmarshal([]byte(fmt.Sprintf("{%q: %s}", f.Name(), value)), other) == nil {
				proto.Merge(in.Interface(), other)
			}
		}
		return protorange.Terminate
	}, nil)
}

// Of each field of requests, responses and rules over xDS one is true: answers have it, another value of it changes what requests
// leave behind, or it is ignored.
func TestFields(t *testing.T) {
	plain, set := observe(t, func(c, req proto.Message) {})
	page, walked, left := readFile(t, "../docs/gateway.md"), map[protoreflect.FullName]bool{}, slices.Clone(ignored)
	var walk func(d protoreflect.MessageDescriptor)
	walk = func(d protoreflect.MessageDescriptor) {
		if walked[d.FullName()] || d.ParentFile().Package() == "google.protobuf" {
			return
		}
		walked[d.FullName()] = true
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			other, _ := observe(t, func(c, req proto.Message) { alter(c, f); alter(req, f) })
			used := set[f.FullName()] || plain != other
			if !slices.Contains(ignored, f.FullName()) {
				assert.True(t, used, "%s is neither read nor set, nor ignored", f.FullName())
			} else {
				left = slices.DeleteFunc(left, func(name protoreflect.FullName) bool { return name == f.FullName() })
				assert.True(t, !used && strings.Contains(page, "`"+string(f.Name())+"`"), "%s is used, or missing on the page", f.FullName())
			}
			if f.Message() != nil && used {
				walk(f.Message())
			}
		}
	}
	for _, m := range []proto.Message{new(pb.RateLimitRequest), new(pb.RateLimitResponse), new(config.RateLimitConfig)} {
		walk(m.ProtoReflect().Descriptor())
	}
	require.Empty(t, left, "the protocol has these no more")
}
