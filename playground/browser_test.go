package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// look is how the page is looked at.
type look struct {
	name          string
	width, height int64
	dark          bool
	phone         bool
}

var looks = []look{
	{name: "light", width: 1280, height: 900},
	{name: "dark", width: 1280, height: 900, dark: true},
	{name: "phone", width: 360, height: 800, phone: true},
}

// browse opens a page in headless Chromium.
func browse(t *testing.T, url string, l look) context.Context {
	t.Helper()
	program := os.Getenv("GOTHROTTLE_CHROMIUM")
	if program == "" {
		t.Skip("make test-playground runs this test: GOTHROTTLE_CHROMIUM names the browser")
	}
	_, err := exec.LookPath(program)
	require.NoError(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(2*patience))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	scheme := pick(l.dark, "dark", "light")
	run(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
	run(t, ctx, chromedp.EmulateViewport(l.width, l.height))
	run(t, ctx, chromedp.Navigate(url))
	return ctx
}

// run runs one action.
func run(t *testing.T, ctx context.Context, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, action))
}

// wait waits until an expression is true in the page.
func wait(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for end := time.Now().Add(patience); !evaluate[bool](t, ctx, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the page did not come to this: %s", expression)
		}
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return value
}
