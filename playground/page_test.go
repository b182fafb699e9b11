package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// A burst is sent by keyboard. The dots in the page are as many as the server's counters say.
func TestPage_dotsAreTheServersCounts(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try?pattern=bursts&size=15&every=600000&lane=throttle,limit:10,count:1,period:3600000&lane=window,limit:4,period:60000", looks[0])
	wait(t, ctx, `document.querySelectorAll(".lane").length === 2`)
	evaluate[bool](t, ctx, `document.querySelector(".primary").focus(), true`)
	press(t, ctx, kb.Enter)
	wait(t, ctx, `document.querySelectorAll(".dot").length === 30`)
	dots := func(lane int, name string) int64 {
		return evaluate[int64](t, ctx, fmt.Sprintf(`document.querySelectorAll(".lane")[%d].querySelectorAll(".dot.%s").length`, lane, name))
	}
	for lane, command := range []string{"GO.THROTTLE", "GO.WINDOW"} {
		c := counts(t, rdb, command)
		require.Equal(t, c.Admitted, dots(lane, "admitted"), command)
		require.Equal(t, c.Limited, dots(lane, "denied"), command)
		require.EqualValues(t, 15, c.Admitted+c.Limited, command)
	}
	require.EqualValues(t, 10, dots(0, "admitted"))
	require.EqualValues(t, 4, dots(1, "admitted"))
	wait(t, ctx, `document.querySelector(".count-admitted").textContent === "10" && document.querySelector(".count-denied").textContent === "5"`)
	wait(t, ctx, `document.querySelector("#summary").textContent.includes("10 admitted, 5 denied")`)
	require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".lane .words").textContent`), "retry_after")
	cli := evaluate[string](t, ctx, `document.querySelector(".lane code").textContent`)
	require.Contains(t, cli, "GO.THROTTLE playground:")
	wait(t, ctx, `document.querySelector(".lane .info").textContent.includes("in_use10")`)
	// The command that the page shows asks the same limiter.
	words := strings.Fields(cli)
	reply, err := rdb.Do(t.Context(), anys(words[3:])...).Slice()
	require.NoError(t, err, cli)
	require.EqualValues(t, 1, reply[0])
}

func anys(words []string) (all []any) {
	for _, w := range words {
		all = append(all, w)
	}
	return all
}

// A setting has an address, which restores it.
func TestPage_linkRestoresTheSetting(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	for _, fragment := range []string{
		"#try?pattern=clients&rate=2&size=9&every=2500&own=true&lane=throttle,limit:7,count:3,period:1500,quantity:2,mode:lockout,time:4000&lane=quota,limit:5,period:2000,align:true&lane=all;throttle,limit:5,count:5,period:1000;window,limit:20,period:10000&lane=policy,policy:playground-login",
		"#compare?limit=6&period=2000&pattern=bursts&rate=8&size=11&every=700",
	} {
		ctx := browse(t, url+"/"+fragment, looks[0])
		copied := func(ctx context.Context) string {
			evaluate[bool](t, ctx, `[...document.querySelectorAll("button")].find((b) => b.textContent === "Copy a link to this").click(), true`)
			return evaluate[string](t, ctx, `location.hash`)
		}
		require.Equal(t, fragment, copied(ctx))
		require.Equal(t, "", evaluate[string](t, ctx, `document.querySelector(".panel .error").textContent`))
	}
	// What is changed by hand stands in the address.
	ctx := browse(t, url+"/#try", looks[0])
	evaluate[bool](t, ctx, `document.querySelector(".lane input[type=number]").focus(), document.activeElement.select(), true`)
	press(t, ctx, "23")
	wait(t, ctx, `location.hash.includes("lane=throttle,limit:23,count:10,period:5000")`)
	wait(t, ctx, `document.querySelector(".lane-title").textContent === "burst of 23, then 10 per 5 s"`)
}

// A link with a limiter that makes no sense shows why, and the form mends it.
func TestPage_wrongLinkIsMended(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try?lane=throttle,limit:2000,count:1,period:1000", looks[0])
	wait(t, ctx, `document.querySelector(".panel .error").textContent === "limit must be between 1 and 1000"`)
	evaluate[bool](t, ctx, `document.querySelector(".lane input[type=number]").focus(), document.activeElement.select(), true`)
	press(t, ctx, "20")
	wait(t, ctx, `document.querySelector(".lane-title").textContent === "burst of 20, then 1 per 1 s" && document.querySelector(".panel .error").textContent === ""`)
}

// A link can hold anything. What the page does not have is replaced, and told; a number that cannot be stands in its field
// with its bounds beside it, and nothing starts before it is mended.
func TestPage_strangeLinkIsTold(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	for _, fragment := range []string{"#try?lane=foo", "#try?lane=all,clauses:5", "#try?lane=policy,policy:other", "#try?lane=quota,mode:reserve",
		"#try?pattern=flood&lane=throttle", "#try?rate=1e9&size=1.5&lane=throttle", "#compare?pattern=clients"} {
		t.Run(fragment, func(t *testing.T) {
			ctx := browse(t, url+"/"+fragment, looks[0])
			wait(t, ctx, `document.querySelector(".lane-title")?.textContent !== ""`)
			require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".panel").textContent`), "not possible here")
			evaluate[bool](t, ctx, `document.querySelector(".primary").click(), true`)
			wait(t, ctx, `document.querySelectorAll(".dot").length > 0`)
			require.Empty(t, evaluate[string](t, ctx, `document.querySelector(".panel .error").textContent`))
		})
	}
	for fragment, beside := range map[string]string{
		"#try?lane=throttle&lane=all;quota,limit:1.5":       "Limit: unitswhole, 1 to 1000",
		"#try?lane=window,limit:x":                          "Limit: unitswhole, 1 to 1000",
		"#try?lane=throttle&lane=quota,period:1e300":        "Period in seconds0.1 to 3600",
		"#try?lane=throttle,mode:lockout,time:1":            "Pause in seconds0.1 to 3600",
		"#compare?limit=1000":                               "Limit: unitswhole, 1 to 50",
		"#compare?period=10&limit=0&pattern=steady&size=99": "Limit: unitswhole, 1 to 50",
	} {
		t.Run(fragment, func(t *testing.T) {
			ctx := browse(t, url+"/"+fragment, looks[0])
			evaluate[bool](t, ctx, `document.querySelector(".primary").click(), true`)
			require.Equal(t, beside, evaluate[string](t, ctx, `document.activeElement.closest(".field").textContent`))
			require.Equal(t, "true", evaluate[string](t, ctx, `document.activeElement.getAttribute("aria-invalid")`))
			require.NotContains(t, evaluate[string](t, ctx, `document.body.innerText`), "json")
		})
	}
}

// The link to the content, and a look at another view, leave the setting as it is.
func TestPage_keepsTheSetting(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	const setting = "#try?lane=quota,limit:5,period:2000"
	ctx := browse(t, url+"/"+setting, looks[0])
	press(t, ctx, kb.Tab+kb.Enter)
	wait(t, ctx, `document.activeElement.id === "content"`)
	require.Equal(t, setting, evaluate[string](t, ctx, `location.hash`))
	evaluate[bool](t, ctx, `document.querySelector("[data-view=watch]").click(), true`)
	wait(t, ctx, `document.querySelector("h1").textContent.startsWith("Watch")`)
	evaluate[bool](t, ctx, `document.querySelector("[data-view=try]").click(), true`)
	wait(t, ctx, `location.hash === "`+setting+`" && document.querySelector(".lane-title")?.textContent === "5 units per window of 2 s"`)
}

// A browser has few connections to one address. One tab too many is told so, hangs no other, and goes on when one is closed.
func TestPage_oneTabTooMany(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	tabs := []context.Context{}
	for range maxPages {
		tabs = append(tabs, browse(t, url+"/#try", looks[0]))
		wait(t, tabs[len(tabs)-1], `document.querySelector(".lane-title")?.textContent !== ""`)
	}
	for _, view := range []string{"try", "watch"} {
		more := browse(t, url+"/#"+view, looks[0])
		wait(t, more, `document.querySelector("main .error").textContent.startsWith("5 tabs show the playground")`)
		evaluate[bool](t, tabs[1], `[...document.querySelectorAll("button")].find((b) => b.textContent === "Send one call").click(), true`)
		wait(t, tabs[1], `document.querySelectorAll(".dot").length > 0`)
		run(t, tabs[0], chromedp.Navigate("about:blank"))
		wait(t, more, `document.querySelector("main .error").textContent === ""`)
		tabs = append(tabs[1:], more)
	}
}

// Under the attack on the boundary a fixed window admits twice its limit but for the call that began the window, and the
// others do not. The limit is low and the period long, so that a call may be late by some 200 ms.
func TestPage_compareFindsTwiceTheLimit(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#compare?limit=4&period=6000&pattern=boundary", looks[0])
	verdicts := `[...document.querySelectorAll(".verdicts tbody td:last-child")].map((cell) => cell.textContent).join()`
	wait(t, ctx, `document.querySelectorAll(".lane").length === 3`)
	evaluate[bool](t, ctx, `document.querySelector(".primary").click(), true`)
	wait(t, ctx, verdicts+` === "almost twice the limit,not above the limit,not above the limit"`)
	wait(t, ctx, `document.querySelector(".lane .peak-text").textContent.startsWith("7 in ")`)
	require.EqualValues(t, 1, evaluate[int](t, ctx, `document.querySelectorAll(".peak").length`))
	require.EqualValues(t, 8, counts(t, rdb, "GO.QUOTA").Admitted)
}

// The page that watches shows the server's counters, its denied keys, and a key that is typed.
func TestPage_watchShowsTheServer(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, false)
	for range 9 {
		require.NoError(t, rdb.Do(t.Context(), "GO.QUOTA", "day:bob", 5, 3600).Err())
	}
	ctx := browse(t, url, looks[0])
	wait(t, ctx, `document.querySelector(".watch tbody")?.textContent.includes("GO.QUOTA")`)
	row := evaluate[[]string](t, ctx, `[...document.querySelectorAll(".watch tbody tr > *")].map((cell) => cell.textContent)`)
	require.Equal(t, []string{"GO.QUOTA", "0", "", "5", "4", "44 %", "0"}, row)
	require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".top-keys").textContent`), "0:day:bob")
	evaluate[bool](t, ctx, `document.querySelector(".key-form input").focus(), true`)
	press(t, ctx, "day:bob"+kb.Enter)
	wait(t, ctx, `document.querySelector(".info")?.textContent.includes("used5")`)
	said := evaluate[string](t, ctx, `document.querySelector(".info").previousElementSibling.textContent`)
	require.Contains(t, said, "day:bob: kind quota, used 5")
	// The key is looked at again, while another one is typed. That is not read out.
	press(t, ctx, "x")
	require.NoError(t, rdb.Do(t.Context(), "GO.QUOTA", "day:bob", 5, 3600, -1).Err())
	wait(t, ctx, `document.querySelector(".info").textContent.includes("used4")`)
	require.Equal(t, said, evaluate[string](t, ctx, `document.querySelector(".info").previousElementSibling.textContent`))
	evaluate[bool](t, ctx, `location.hash = "#try", true`)
	wait(t, ctx, `document.querySelector("h1").textContent === "This page only reads"`)
}

// The words below a chart explain what is drawn there, and nothing else.
func TestPage_legend(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try?pattern=clients&own=true&lane=policy,policy:playground-login&lane=policy,policy:playground-api", looks[0])
	wait(t, ctx, `document.querySelectorAll(".lane-title")[1]?.textContent === "policy playground-api"`)
	legends := `[...document.querySelectorAll(".chart-box + p")].map((p) => p.textContent).join("|")`
	require.Eventually(t, func() bool {
		return evaluate[string](t, ctx, legends) == "|Curves, one for each limiter of the policy: each as a share of its limit."
	}, patience, 50*time.Millisecond)
	evaluate[bool](t, ctx, `document.querySelector(".primary").click(), true`)
	wait(t, ctx, legends+`.startsWith("Dashed: what is left for the second client (■).|Curves, one")`)
}

// When the program was started again, or a session ended, an open page opens a new session and goes on.
func TestPage_comesBack(t *testing.T) {
	addr, rdb := startServer(t)
	url, a := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try", looks[0])
	sessions := func() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.sessions) }
	require.Eventually(t, func() bool { return sessions() == 1 }, patience, 10*time.Millisecond)
	const call = `[...document.querySelectorAll("button")].find((b) => b.textContent === "Send one call").click(), true`
	evaluate[bool](t, ctx, call)
	evaluate[bool](t, ctx, call)
	wait(t, ctx, `document.querySelectorAll(".dot").length === 2`)
	a.close()
	a.mu.Lock()
	a.closed = false
	a.mu.Unlock()
	require.Eventually(t, func() bool { return sessions() == 1 }, patience, 10*time.Millisecond)
	evaluate[bool](t, ctx, call)
	wait(t, ctx, `document.querySelector(".count-admitted").textContent === "1" && document.querySelector(".panel .error").textContent === ""`)
	require.EqualValues(t, 1, evaluate[int](t, ctx, `document.querySelectorAll(".dot").length`), "dots of the session that is gone")
}

// With reduced motion the time line moves once a second.
func TestPage_reducedMotion(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try", looks[0])
	// moves counts how often the time line moved in 60 frames, and how many seconds these took.
	const moves = `new Promise((done) => {
		const began = performance.now(), seen = new Set();
		const frame = (left) => {
			seen.add(document.querySelector(".chart > g:last-child > g").getAttribute("transform"));
			if (left) requestAnimationFrame(() => frame(left - 1));
			else done([seen.size, (performance.now() - began) / 1000]);
		};
		frame(60);
	})`
	wait(t, ctx, `document.querySelector(".chart > g:last-child > g")?.hasAttribute("transform")`)
	count := func() []float64 {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](moves, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		return got
	}
	require.Greater(t, count()[0], 10.0)
	media(t, ctx, "prefers-reduced-motion", "reduce")
	slow := count()
	require.LessOrEqual(t, slow[0], slow[1]+2)
}
