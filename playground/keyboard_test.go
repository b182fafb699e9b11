package main

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// Where the focus is, and whether it can be seen. Radio buttons of one group are one stop. A choice shows the focus of
// its radio button itself.
const focused = `(() => {
	const e = document.activeElement;
	const shown = e.matches(".choice input") ? e.closest(".choice") : e;
	const style = getComputedStyle(shown);
	e.dataset.reached = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ? "seen" : "unseen";
	return e === document.body;
})()`

// What a person can use and was not reached, or was reached without showing it.
const notReached = `[...document.querySelectorAll("a[href], button, input, select, summary")]
	.filter((e) => e.checkVisibility() && !e.disabled && !(e.type === "radio" && document.querySelector('[name="' + e.name + '"][data-reached="seen"]')))
	.filter((e) => e.dataset.reached !== "seen").map((e) => e.outerHTML.slice(0, 120))`

// Tab reaches every control of every view, and each shows that it has the focus.
func TestKeyboard_reachesEveryControl(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	for _, view := range []string{"/#try?pattern=clients&lane=throttle,limit:7,count:3,period:1500,mode:reserve,time:4000&lane=all;throttle,limit:5,count:5,period:1000;quota,limit:20,period:10000&lane=policy,policy:playground-login",
		"/#compare", "/#watch"} {
		t.Run(view, func(t *testing.T) {
			ctx := browse(t, url+view, looks[0])
			evaluate[bool](t, ctx, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), true`)
			for stop := 0; stop < 120; stop++ {
				press(t, ctx, kb.Tab)
				if evaluate[bool](t, ctx, focused) && stop > 5 {
					break
				}
			}
			require.Empty(t, evaluate[[]string](t, ctx, notReached))
		})
	}
}

// Every kind of control of Try is used by keyboard alone, and does what it says.
func TestKeyboard_usesEveryControl(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	ctx := browse(t, url+"/#try", looks[0])
	focus := func(selector string) {
		t.Helper()
		require.True(t, evaluate[bool](t, ctx, `(() => { const e = `+selector+`; e.focus(); return document.activeElement === e; })()`), selector)
	}
	button := func(text string) string {
		return `[...document.querySelectorAll("button, summary")].find((b) => b.textContent === "` + text + `")`
	}
	use := func(selector, keys, want string) {
		t.Helper()
		focus(selector)
		press(t, ctx, keys)
		wait(t, ctx, want)
	}
	use(button("Send one call"), kb.Enter, `document.querySelectorAll(".dot").length === 1`)
	use(button("Send one call"), " ", `document.querySelectorAll(".dot").length === 2`)
	use(button("Reset"), kb.Enter, `document.querySelector(".count-admitted").textContent === "0"`)
	use(`document.querySelector("[name=pattern]:checked")`, kb.ArrowDown, `location.hash.includes("pattern=bursts")`)
	use(`document.querySelector("[name=pattern]:checked")`, kb.ArrowUp, `location.hash.includes("pattern=steady")`)
	use(`document.querySelector("[type=range]")`, kb.ArrowRight, `location.hash.includes("rate=4.5")`)
	use(button("Start traffic"), " ", `document.querySelector(".primary").textContent === "Stop traffic"`)
	wait(t, ctx, `document.querySelectorAll(".dot").length > 3`)
	use(button("Stop traffic"), " ", `document.querySelector(".primary").textContent === "Start traffic"`)
	use(`document.querySelector("[data-name=kind]")`, "S", `document.querySelector(".lane h2").textContent === "Limiter 1: GO.WINDOW"`)
	use(`document.querySelector(".lane [type=checkbox]")`, " ", `location.hash.includes("exact:true")`)
	use(`document.querySelector("[data-name=mode]")`, "U", `location.hash.includes("mode:upto")`)
	use(button("Reply, commands and GO.INFO"), kb.Enter, `document.querySelector(".facts").open`)
	use(button("Copy"), kb.Enter, `document.querySelector(".line [role=status]").textContent === "Copied"`)
	use(button("Add a limiter"), kb.Enter, `document.querySelectorAll(".lane").length === 2`)
	use(`document.querySelectorAll("[data-name=kind]")[1]`, "A", `document.querySelectorAll(".lane h2")[1].textContent === "Limiter 2: GO.POLICY"`)
	use(button("Change this limiter"), kb.Enter, `document.querySelector(".change").open`)
	use(button("Remove limiter 1"), kb.Enter, `document.querySelectorAll(".lane").length === 1`)
	use(`document.getElementById("theme")`, kb.Enter, `document.documentElement.dataset.theme === "dark"`)
	use(`document.querySelector("[data-view=watch]")`, kb.Enter, `document.querySelector("h1").textContent.startsWith("Watch") && document.activeElement.id === "content"`)
}
