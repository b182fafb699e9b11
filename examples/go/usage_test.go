package examples

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle/throttlehttp"
)

func TestUsedTokens(t *testing.T) {
	used := UsedTokens(func(*http.Request) int64 { return 7 })
	for body, want := range map[string]int64{
		`{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}}`:                                 21,
		"data: {\"usage\":null}\n\ndata: {\"usage\":{\"total_tokens\":30}}\n\ndata: [DONE]\n":                                         30,
		"{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}\nevent: message_delta\ndata: {\"usage\": {\"output_tokens\": 15}}\n\n": 40,
		"broken": 7,
	} {
		require.Equal(t, want, used(nil, throttlehttp.Response{Status: http.StatusOK, Tail: []byte(body)}), body)
	}
	require.Zero(t, used(nil, throttlehttp.Response{Status: http.StatusTooManyRequests}))
}
