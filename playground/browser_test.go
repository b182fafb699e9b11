package main

import (
	"context"
	"os"
	"sync"
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
}

var looks = []look{
	{name: "light", width: 1280, height: 900},
	{name: "dark", width: 1280, height: 900, dark: true},
	{name: "phone", width: 360, height: 800},
}

// browser starts headless Chromium once, for all tests. It returns a context of the browser.
var browser = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("GOTHROTTLE_CHROMIUM")), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.WSURLReadTimeout(2*patience))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	closeBrowser = cancel
	return ctx, chromedp.Do(ctx)
})

var closeBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// browse opens a page in a new tab, until the test ends. A browser keeps few connections to one server, and each tab has
// one: so a test with several pages has a subtest for each.
func browse(t *testing.T, url string, l look) context.Context {
	t.Helper()
	if os.Getenv("GOTHROTTLE_CHROMIUM") == "" {
		t.Skip("make test-playground runs this test: GOTHROTTLE_CHROMIUM names the browser")
	}
	parent, err := browser()
	require.NoError(t, err)
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx)) // opens the tab, which lives as long as the context of this call
	media(t, ctx, "prefers-color-scheme", pick(l.dark, "dark", "light"))
	run(t, ctx, chromedp.EmulateViewport(l.width, l.height))
	run(t, ctx, chromedp.Navigate(url))
	wait(t, ctx, `document.querySelector("main .view") !== null`)
	return ctx
}

// media sets what the page's system prefers.
func media(t *testing.T, ctx context.Context, name, value string) {
	t.Helper()
	run(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: name, Value: value}},
		})
		return err
	}))
}

// run runs one action.
func run(t *testing.T, ctx context.Context, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, action))
}

// press types keys, one after another.
func press(t *testing.T, ctx context.Context, keys string) {
	t.Helper()
	run(t, ctx, chromedp.KeyEvent(keys))
}

// wait waits until an expression is true in the page.
func wait(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for end := time.Now().Add(patience); !evaluate[bool](t, ctx, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the page did not come to this: %s\n%s", expression, evaluate[string](t, ctx, `document.body.innerText`))
		}
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return value
}
