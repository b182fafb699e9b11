package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe finds no fault in any view, in light, in dark and on a phone. Nothing is wider than the phone, also with letters of
// twice the size, and the verdicts of Compare are in sight.
func TestAxe(t *testing.T) {
	if os.Getenv("GOTHROTTLE_AXE") == "" {
		t.Skip("make test-playground runs this test: GOTHROTTLE_AXE names axe-core's file")
	}
	axe, err := os.ReadFile(os.Getenv("GOTHROTTLE_AXE"))
	require.NoError(t, err)
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	for _, l := range looks {
		for _, view := range []string{"try?pattern=clients&own=true&lane=throttle,limit:7,count:3,period:1500,mode:lockout,time:4000&lane=all;throttle,limit:5,count:5,period:1000;quota,limit:20,period:10000&lane=policy,policy:playground-login",
			"compare?limit=5&period=1000", "watch"} {
			name, _, _ := strings.Cut(view, "?")
			t.Run(l.name+" "+name, func(t *testing.T) { findNoFault(t, string(axe), url+"/#"+view, l) })
		}
	}
}

func findNoFault(t *testing.T, axe, url string, l look) {
	ctx := browse(t, url, l)
	evaluate[bool](t, ctx, `document.querySelector(".primary")?.click(), true`)
	wait(t, ctx, `document.querySelectorAll(".dot").length > 3 || document.querySelector(".watch tbody")?.children.length > 0`)
	evaluate[bool](t, ctx, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), true`)
	run(t, ctx, chromedp.Evaluate[chromedp.Void](axe))
	require.Empty(t, violations(t, ctx))
	require.LessOrEqual(t, evaluate[int64](t, ctx, `document.documentElement.scrollWidth`), l.width)
	require.True(t, evaluate[bool](t, ctx, `[...document.querySelectorAll(".verdicts td:last-child")].every((cell) => cell.getBoundingClientRect().right <= innerWidth)`))
	run(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.SetFontSizes, page.SetFontSizesParams{FontSizes: &page.FontSizes{Standard: 32, Fixed: 26}})
		return err
	}))
	wait(t, ctx, `getComputedStyle(document.body).fontSize === "32px"`)
	require.LessOrEqual(t, evaluate[int64](t, ctx, `document.documentElement.scrollWidth`), l.width)
}

// violations returns what axe finds, with the elements.
func violations(t *testing.T, ctx context.Context) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`axe.run(document, { resultTypes: ["violations"] })
		.then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200) + " " + n.any.map((a) => a.message).join()).join("\n")))`, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return found
}
