package commands_test

import (
	"testing"

	"gothrottle/commands/memory"
)

// A clock in 1970: the text of a quota has 19 digits for its end then, too.
func TestQuota_text(t *testing.T) {
	s := memory.NewServer()
	for _, want := range []string{"1@0000000001000001000", "2@0000000001000001000"} {
		if _, err := s.Do(1, "GO.QUOTA", "k", "5", "1"); err != nil || s.Get("k").Text != want {
			t.Errorf("%+v, %v, want %s", s.Get("k"), err, want)
		}
	}
}
