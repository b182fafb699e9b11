package serve

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"gothrottle/gateway/internal/engine"
)

// dynamicMetadata is the request, and the metadata of rules that admit it, in the form of envoyproxy/ratelimit.
func dynamicMetadata(req *pb.RateLimitRequest, response *pb.RateLimitResponse, asks []engine.Ask) *structpb.Struct {
	all := map[string]any{"domain": req.GetDomain()}
	var descriptors []any
	metadata := map[string]any{}
	for i, d := range req.GetDescriptors() {
		descriptors = append(descriptors, described(d))
		if asks[i].Limit != nil && response.Statuses[i].Code == pb.RateLimitResponse_OK {
			merge(metadata, asks[i].Metadata)
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

func described(d *common.RateLimitDescriptor) map[string]any {
	entries := []any{}
	for _, e := range d.GetEntries() {
		entries = append(entries, e.GetKey()+"="+e.GetValue())
	}
	all := map[string]any{"entries": entries}
	if d.GetLimit() != nil {
		all["limit"] = d.GetLimit().String()
	}
	if d.GetHitsAddend() != nil {
		all["hitsAddend"] = d.GetHitsAddend().GetValue()
	}
	return all
}

// merge adds what is missing.
func merge(to, from map[string]any) {
	for k, v := range from {
		inner, mapping := v.(map[string]any)
		if _, found := to[k]; !found && mapping {
			to[k] = map[string]any{} // a copy, because others are merged into it
		} else if !found {
			to[k] = v
		}
		if there, both := to[k].(map[string]any); mapping && both {
			merge(there, inner)
		}
	}
}
