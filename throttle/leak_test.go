package throttle_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// After the tests no goroutine of the package runs: what a client has started ends with it.
func TestMain(m *testing.M) {
	code := m.Run()
	left := goroutines()
	for end := time.Now().Add(5 * time.Second); left != "" && time.Now().Before(end); left = goroutines() {
		time.Sleep(10 * time.Millisecond)
	}
	if code == 0 && left != "" {
		fmt.Println("a goroutine is left:\n" + left)
		code = 1
	}
	os.Exit(code)
}

// goroutines returns the stack of a goroutine that package throttle has started, or that waits in it.
func goroutines() string {
	text := make([]byte, 1<<22)
	for _, stack := range strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(stack, "/throttle.") || strings.Contains(stack, "/wire.") {
			return stack
		}
	}
	return ""
}
