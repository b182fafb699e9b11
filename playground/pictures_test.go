package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("pictures", "", "a folder: write the pictures of docs/playground.md there")

// The pictures of the documentation are those of a page that a person sees.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("build/test-playground.sh -run Pictures -pictures pictures writes the pictures")
	}
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	for _, l := range looks {
		ctx := browse(t, url+"/#try?pattern=clients&rate=1&size=8&every=5000&lane=throttle,limit:10,count:10,period:5000&lane=window,limit:10,period:5000", l)
		wait(t, ctx, `document.querySelectorAll('.lane').length === 2`)
		run(t, ctx, chromedp.Steps(chromedp.Click(`.primary`), chromedp.Sleep(14*time.Second)))
		evaluate[bool](t, ctx, `scrollTo(0, document.documentElement.clientWidth < 500 ? document.querySelector(".lane").offsetTop - 70 : 0), true`)
		take(t, ctx, l.name)
	}
	for _, view := range []string{"compare", "watch"} {
		ctx := browse(t, url+"/#"+view, looks[0])
		if view == "compare" {
			wait(t, ctx, `document.querySelectorAll('.lane').length === 3`)
			run(t, ctx, chromedp.Click(`.primary`))
		}
		run(t, ctx, chromedp.Sleep(10*time.Second))
		take(t, ctx, view)
	}
}

func take(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644))
}
