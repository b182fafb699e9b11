package throttle

import (
	"errors"
	"strings"
	"testing"

	"gothrottle/commands"
)

// Every error text of the module has a meaning of its own. Only two are outages.
func TestErrors_ofTheModule(t *testing.T) {
	for code := commands.ErrInternal; code <= commands.ErrTopOff; code++ {
		outage := code == commands.ErrInternal || code == commands.ErrForked
		for _, text := range []string{code.Text(), strings.Replace(code.Text(), "ERR ", "ERR clause 31: ", 1)} {
			if got := errors.Is(meaning(text), ErrUnavailable); got != outage && (outage || text == code.Text() || meaning(code.Text()) == ErrParams) {
				t.Errorf("%q: %v", text, meaning(text))
			}
		}
	}
}
