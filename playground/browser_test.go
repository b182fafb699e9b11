package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for something that must come: long, because machines may be slow.
const patience = time.Minute

// look is how the page is looked at.
type look struct {
	name          string
	width, height int64
	dark, still   bool
}

var (
	light = look{name: "light", width: 1280, height: 900, still: true}
	alive = look{name: "alive", width: 1280, height: 900}
	looks = []look{light, {"dark", 1280, 900, true, true}, {"phone", 390, 844, false, true}, {"narrow", 360, 800, true, true}}
)

var browser context.Context // of headless Chromium, in which each view has a tab

func TestMain(m *testing.M) {
	if program := os.Getenv("GOTHROTTLE_CHROMIUM"); program != "" {
		var cancel context.CancelFunc
		browser, cancel = chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
			chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(2*patience)))
		defer cancel()
		if err := chromedp.Do(browser); err != nil {
			panic(err)
		}
	}
	m.Run()
}

var folder = http.FileServer(http.Dir("../build/out/playground"))

// browse opens a view in a new tab, and waits for the limiter.
func browse(t *testing.T, view string, l look) context.Context {
	t.Helper()
	ctx := open(t, folder, view, l)
	require.True(t, evaluate[bool](t, ctx, `import("./program.js").then((program) => program.ready).then(() => true)`))
	return ctx
}

// open opens a view in a new tab, below a path of its own. An error in the browser's console fails the test.
func open(t *testing.T, folder http.Handler, view string, l look) context.Context {
	t.Helper()
	if browser == nil {
		t.Skip("make test-playground runs this test: GOTHROTTLE_CHROMIUM names the browser")
	}
	files := httptest.NewServer(http.StripPrefix("/some/path/", folder))
	t.Cleanup(files.Close)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("%s: %s", view, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				t.Errorf("%s: %s", view, e.Entry.Text)
			}
		}
	}))
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx)) // opens the tab, which lives as long as the context of this call
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: map[bool]string{true: "dark", false: "light"}[l.dark]},
		{Name: "prefers-reduced-motion", Value: map[bool]string{true: "reduce", false: "no-preference"}[l.still]}}}
	do(t, ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
	})
	do(t, ctx, chromedp.EmulateViewport(l.width, l.height))
	do(t, ctx, chromedp.Navigate(files.URL+"/some/path/"+view))
	wait(t, ctx, `document.querySelector("main .view") !== null`)
	return ctx
}

// visit goes to another view in the same tab, and waits until it is drawn.
func visit(t *testing.T, ctx context.Context, view string) {
	t.Helper()
	evaluate[bool](t, ctx, `new Promise((done) => {
		addEventListener("hashchange", () => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), { once: true });
		location.hash = `+strconv.Quote(view)+`;
	})`)
}

// do runs one action and returns its value.
func do[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(t, err)
	return value
}

// press types keys, one after another.
func press(t *testing.T, ctx context.Context, keys string) {
	t.Helper()
	do(t, ctx, chromedp.KeyEvent(keys))
}

// wait waits until an expression is true in the page.
func wait(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	if !evaluate[bool](t, ctx, `new Promise((done) => {
		const look = (left) => (`+expression+`) ? done(true) : left ? setTimeout(look, 50, left - 1) : done(false);
		look(`+strconv.Itoa(int(patience/time.Second)*10)+`);
	})`) {
		t.Fatalf("the page did not come to this: %s\n%s", expression, evaluate[string](t, ctx, `document.body.innerText`))
	}
}

// evaluate returns the value of an expression in the page. A promise is waited for.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	return do(t, ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}
