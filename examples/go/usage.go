package examples

import (
	"net/http"
	"regexp"
	"strconv"

	"gothrottle/throttle/throttlehttp"
)

// counts finds the usage of a language model's answer, streamed or not: OpenAI has a total, Anthropic two parts.
var counts = regexp.MustCompile(`"(total_tokens|input_tokens|output_tokens)"\s*:\s*(\d{1,12})\b`)

// UsedTokens is the Charge of a throttlehttp.Rule for tokens. A denied request has used none. If an answer doesn't say what
// it used, for example because its stream broke off, the estimate stays.
func UsedTokens(estimate func(*http.Request) int64) func(*http.Request, throttlehttp.Response) int64 {
	return func(r *http.Request, w throttlehttp.Response) int64 {
		last := map[string]int64{}
		for _, m := range counts.FindAllSubmatch(w.Tail, -1) {
			last[string(m[1])], _ = strconv.ParseInt(string(m[2]), 10, 64)
		}
		switch total, ok := last["total_tokens"]; {
		case ok:
			return total
		case len(last) > 0:
			return last["input_tokens"] + last["output_tokens"]
		case w.Status != http.StatusOK:
			return 0
		}
		return estimate(r)
	}
}
