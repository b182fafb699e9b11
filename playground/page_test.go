package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const counts = `[...document.querySelectorAll(".counts")].map((c) => c.textContent).join()`

// Enter alone goes through the story, act by act and scene by scene, to the reader's own log.
func TestPage_story(t *testing.T) {
	ctx := browse(t, "#story/2", light)
	for scene := 2; scene < 8; scene++ {
		here := fmt.Sprintf("#story/%d", scene)
		for try := 0; evaluate[string](t, ctx, `location.hash`) == here; try++ {
			require.Less(t, try, 9, here)
			evaluate[bool](t, ctx, `document.querySelector(".story .primary:not([hidden])").focus(), true`)
			press(t, ctx, kb.Enter)
		}
	}
	wait(t, ctx, `location.hash === "#log"`)
}

// It rains before the reader has done anything. A call made before the limiter has arrived is decided then. What doesn't fit
// bounces off with its wait, a number in the text changes its word of the command, and the page asks for no frame once it pauses.
func TestPage_rain(t *testing.T) {
	arrives := make(chan bool)
	ctx := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".wasm") {
			<-arrives
		}
		folder.ServeHTTP(w, r)
	}), "", alive)
	wait(t, ctx, `document.querySelector(".funnel-wall") !== null`)
	evaluate[bool](t, ctx, `document.querySelector(".funnel").dispatchEvent(new PointerEvent("pointerdown")), true`)
	close(arrives)
	wait(t, ctx, `/admitted1 of 1Rain admitted[1-9]/.test(document.querySelector(".score").textContent)`)
	evaluate[bool](t, ctx, `[...document.querySelectorAll("button")].find((b) => b.textContent === "Call 12 times").click(), true`)
	wait(t, ctx, `document.querySelector(".off .label") !== null`)
	require.Regexp(t, `: denied: 5 of 5 in use`, evaluate[string](t, ctx, `document.querySelector(".said").textContent`))
	require.Positive(t, frames(t, ctx, ""))
	require.Zero(t, frames(t, ctx, `document.querySelector(".bar button").click()`))
	evaluate[bool](t, ctx, `document.querySelector(".slide input").focus(), true`)
	press(t, ctx, kb.ArrowRight)
	require.Equal(t, "GO.THROTTLE you <mark>5</mark> 1 1s MS", evaluate[string](t, ctx, `document.querySelector(".lines code").innerHTML`))
}

// mistakes plays a scene with random numbers, calls and times, and returns where the funnel differs from what is left by the
// limiter's own reply, or where the drawing isn't what is in the funnel: its area, inside the walls.
const mistakes = `(async () => {
	const { inside } = await import("./funnel.js"), { stage } = document.querySelector(".stage"), wrong = [];
	let seed = 7;
	const random = (n) => (seed = (seed * 48271) % 2147483647) % n, sum = (all) => all.reduce((a, b) => a + b, 0);
	const area = (polygon) => { const p = [...polygon.points]; return sum(p.map(({ x, y }, i) => { const q = p[(i + 1) % p.length]; return (x * q.y - q.x * y) / 2; })); };
	for (let world = 0; world < 8; world++) {
		stage.hold(0);
		stage.scene.own = Array.from({ length: random(15) }, () => random(stage.played.end)).sort((a, b) => a - b);
		for (const input of document.querySelectorAll(".slide input")) {
			input.value = Number(input.min) + random(1 + input.max - input.min);
			input.dispatchEvent(new Event("input"));
		}
		for (let look = 0; look < 40; look++) for (const { lane, first, one, middle, rim, neck, slope, water, drops } of stage.funnel.all) {
			const curve = lane.curves.at(/LEASE/.test(lane.command) ? 1 : 0), [at] = curve[random(curve.length)], now = look % 2 ? at : at + random(1000) / 7;
			const before = curve.findLast((point) => point[0] <= at), left = before[2] - before[1], holds = (when) => sum(inside(lane, when).map(({ units }) => units)), most = /ALL/.test(lane.command) ? first.limit : Infinity; // GO.ALL says nothing about debt
			const locked = lane.lockouts.some(({ from, to }) => from <= at && at <= to), least = Math.min(holds(at), most), upTo = first.kind === "WINDOW" ? holds(at - first.period / 119) : least + 1;
			if (!locked && !(left >= least - 0.001 && left <= Math.max(upTo, least) + 0.001)) wrong.push([lane.command, stage.scene.own.join(), at, left + " by its reply", least].join(": "));
			stage.move(now);
			const all = [...drops.querySelectorAll(".drop:not(.denied)")].map((e) => ({ call: Number(e.dataset.at), x: e.cx.baseVal.value - middle, y: e.cy.baseVal.value, r: e.r.baseVal.value }));
			const drawn = (sum([...water.querySelectorAll(".liquid")].map(area).map(Math.abs)) + sum(all.filter(({ call }) => call <= now).map(({ r }) => Math.PI * r * r))) / one;
			if (Math.abs(drawn - holds(now)) > 0.02 * first.limit / 5) wrong.push([lane.command, now, drawn + " drawn", holds(now)].join(": "));
			for (const { x, y, r } of all) if (y > rim && (9 + slope * (neck - y) - Math.abs(x)) / Math.hypot(1, slope) < r - 1) wrong.push([lane.command, now, "a drop is in the wall", x, y, r].join(": "));
		}
	}
	return wrong.slice(0, 9);
})()`

func TestPage_funnels(t *testing.T) {
	ctx := browse(t, "#console", alive)
	for scene := 1; scene < 8; scene++ {
		visit(t, ctx, fmt.Sprintf("#story/%d", scene))
		require.Empty(t, evaluate[[]string](t, ctx, mistakes), scene)
	}
}

// At their ends, the scenes have these scores. On a phone, too, what the reader switches on is in the commands.
func TestPage_scores(t *testing.T) {
	ctx := browse(t, "#console", looks[2])
	for scene, want := range []string{2: "Most in 4 s859", 3: "Most in 4 s959Most in 0.5 s955", 4: "Guesses that got through85", 5: "Questions answered6 of 14", 6: "SHARE0 of 531 of 65With SHARE7 of 79 of 54", 7: "Held by the crashed request0"} {
		if want != "" {
			visit(t, ctx, fmt.Sprintf("#story/%d", scene))
			evaluate[bool](t, ctx, `((stage) => { stage.hold(stage.played.end); return true; })(document.querySelector(".stage").stage)`)
			require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".score").textContent`), want)
		}
	}
	visit(t, ctx, "#story/6")
	require.True(t, evaluate[bool](t, ctx, `((stage) => {
		stage.hold(15000);
		[...document.querySelectorAll("button")].find((b) => b.textContent === "Switch SHARE on").click();
		stage.hold(stage.now);
		return [...document.querySelectorAll(".lines code")].every((c) => c.checkVisibility() && c.textContent.endsWith(" SHARE 1")) && document.querySelector(".drop:not(.denied)") === null; // which prefers no motion
	})(document.querySelector(".stage").stage)`))
}

// frames is how many frames the page asks for in 300 ms after an action.
func frames(t *testing.T, ctx context.Context, action string) int {
	t.Helper()
	return evaluate[int](t, ctx, `(() => {
		const ask = window.ask ??= requestAnimationFrame;
		window.asked = 0;
		window.requestAnimationFrame = (f) => { window.asked++; return ask(f); };
		`+action+`;
		return new Promise((done) => setTimeout(() => done(window.asked), 300));
	})()`)
}

// drag moves the time of the page.
const drag = `((at) => { const range = document.querySelector(".bar input"); range.value = at; range.dispatchEvent(new Event("input")); return true; })`

// The page plays to its end. Then, and while paused, it asks for no frame. Going back in time shows what was there before.
func TestPage_time(t *testing.T) {
	ctx := browse(t, "#try?c=GO.QUOTA+k+3+1&s=2&t=steady+4", alive)
	wait(t, ctx, `document.querySelector(".bar .primary").textContent === "Play again"`)
	require.Zero(t, frames(t, ctx, ""))
	wait(t, ctx, `document.querySelector("#summary").textContent === "Fixed window: 7 admitted, 2 denied."`)
	require.Positive(t, frames(t, ctx, `document.querySelector(".bar .primary").click()`))
	require.Zero(t, frames(t, ctx, `document.querySelector(".bar .primary").textContent === "Pause" && document.querySelector(".bar .primary").click()`))
	for at, want := range map[int]string{400: "2 admitted0 denied", 800: "3 admitted1 denied", 2000: "7 admitted2 denied"} {
		evaluate[bool](t, ctx, fmt.Sprintf("%s(%d)", drag, at))
		require.Equal(t, want, evaluate[string](t, ctx, counts), at)
	}
}

// The reader calls by a click into the chart and by keyboard, sees why a call was denied, and the link holds all of it.
func TestPage_ownCalls(t *testing.T) {
	ctx := browse(t, "#try?c=GO.THROTTLE+k+1+2+1000+MS&s=10&t=none", light)
	evaluate[bool](t, ctx, drag+"(5000)")
	evaluate[bool](t, ctx, `document.querySelector(".chart-box").focus(), true`)
	press(t, ctx, kb.Enter+kb.Enter+kb.Enter)
	wait(t, ctx, counts+` === "2 admitted1 denied"`)
	require.Equal(t, "5.00 s: denied: 2 of 2 in use, 1 unit drains in 500 ms. GO.THROTTLE k 1 2 1000 MS limited 1, limit 2, remaining 0, retry_after 500, reset_after 1000",
		evaluate[string](t, ctx, `document.querySelector(".said").textContent`))
	press(t, ctx, kb.ArrowLeft)
	require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".said").textContent`), "admitted: 2 of 2 in use now")
	evaluate[bool](t, ctx, `(() => {
		const chart = document.querySelector(".chart"), box = chart.getBoundingClientRect();
		return chart.dispatchEvent(new PointerEvent("click", { bubbles: true, clientX: box.left + 76 + (box.width - 86) * 0.8, clientY: box.top + 30 }));
	})()`)
	require.Equal(t, "3 admitted1 denied", evaluate[string](t, ctx, counts))
	hash := evaluate[string](t, ctx, `location.hash`)
	require.Regexp(t, `own=5000\+5000\+5000\+(7999|8000|8001)$`, hash)
	again := browse(t, hash, light)
	require.Equal(t, "3 admitted1 denied", evaluate[string](t, again, counts))
	require.Equal(t, hash, evaluate[string](t, again, `location.hash`))
}

// A command is changed in place: its synopsis is below it, and an error is the module's own.
func TestPage_commands(t *testing.T) {
	ctx := browse(t, "#try?c=GO.QUOTA+k++1000+MS&s=10&t=bursts+7+60", light)
	evaluate[bool](t, ctx, `(() => { const line = document.querySelector(".command"); line.focus(); line.setSelectionRange(11, 11); return true; })()`)
	press(t, ctx, "6")
	wait(t, ctx, counts+` === "6 admitted1 denied"`)
	require.Contains(t, evaluate[string](t, ctx, `document.querySelector(".help").textContent`), "GO.QUOTA key limit period [quantity]")
	evaluate[bool](t, ctx, `document.querySelector(".command").setSelectionRange(99, 99), true`)
	press(t, ctx, " force")
	wait(t, ctx, counts+` === "7 admitted0 denied"`)
	press(t, ctx, " x")
	wait(t, ctx, `document.querySelector(".error").textContent.startsWith("ERR unknown option 'x': ")`)
}

// A link or a number that cannot be gets one sentence, and the page goes on. No bracket says that more than the limit was
// admitted: the most in a period is exact to the microsecond, of each key alone, and leaves out slots in the future.
func TestPage_links(t *testing.T) {
	const mended = "The link holds a setting that is not possible here. The page shows the nearest one."
	ctx := browse(t, "#console", light)
	for view, want := range map[string]string{
		"#nowhere": "The page has no such view: the link may be cut off. This is where it begins.", "#story/9": "The page has no such view: the link may be cut off. This is where it begins.",
		"#try?t=flood":                                          mended,
		"#try?c=GO.QUOTA+k+1+1&t=steady+1e300":                  mended,
		"#try?c=GO.QUOTA+k+1+1&s=-5&own=x":                      mended,
		"#try?c=%00%22%3Cb%3E":                                  "ERR quotes are not closed",
		"#try?c=GO.THROTTLE+k+999999999999999999999+1+1":        "ERR max_burst must be between 0 and 999999999999",
		"#try?c=GO.QUOTA+k+1000000000000+3153600000&t=bursts+1": "2000 admitted",
		"#try?c=SET+k+v":                                        "this command calls no limiter",
		"#try?c=":                                               "ERR empty command",
		"#try?c=GO.THROTTLE+k+5+1+1&t=steady+1000&s=86400":      "The traffic ends after 2,000 calls.",
		"#console?l=%2B999999999d&l=%2B":                        "(error) the clock ends in 2127",
		"#try?t=clients+3+8+5&s=12&c=GO.WINDOW+w+10+5+3+UPTO&c=GO.LEASE+l+5+5+$n":                     "12 admitted\n49 denied|15 admitted\n46 denied",
		"#try?t=clients+3+8+5&s=12&c=GO.WINDOW+w:$client+9+4000+MS&c=GO.THROTTLE+k+0+2+1+1+RESERVE+5": "52 admitted\n9 denied|35 admitted\n26 denied",
	} {
		visit(t, ctx, view)
		for _, part := range strings.Split(want, "|") {
			require.Contains(t, evaluate[string](t, ctx, `document.querySelector("main").innerText`), part, view)
		}
		require.False(t, strings.Contains(view, "t=clients") && evaluate[bool](t, ctx, `document.querySelector(".peak-text") !== null`), view)
	}
}

// A conversation in the console prints what redis-cli prints, lists commands, and has a link.
func TestPage_console(t *testing.T) {
	ctx := browse(t, "#console", light)
	evaluate[bool](t, ctx, `[...document.querySelectorAll("button")].find((b) => b.textContent === "Start again").click(), true`)
	evaluate[bool](t, ctx, `document.querySelector(".terminal").replaceChildren(), document.querySelector(".command").focus(), true`)
	press(t, ctx, "go.th")
	require.Equal(t, "GO.THROTTLE  GO.THROTTLE_RO", evaluate[string](t, ctx, `document.querySelector(".help").textContent`))
	press(t, ctx, "rottle k 4 5 10 x"+kb.Enter+"+1s"+kb.Enter+"GO.QUOTA k 5 60"+kb.Enter+"GO.INFO k"+kb.Enter+kb.ArrowUp)
	require.Equal(t, "GO.INFO k", evaluate[string](t, ctx, `document.querySelector(".command").value`))
	said := evaluate[string](t, ctx, `[...document.querySelectorAll(".terminal pre")].map((p) => p.textContent).join("\n")`)
	require.Contains(t, said, "> go.throttle k 4 5 10 x\n(error) ERR unknown option 'x': ")
	require.Contains(t, said, "\n> +1s\n> GO.QUOTA k 5 60\n1) (integer) 0\n")
	require.Contains(t, said, "> GO.INFO k\n1) \"kind\"\n2) \"quota\"\n3) \"expires_in_ms\"\n4) (integer) 75000\n")
	again := browse(t, evaluate[string](t, ctx, `location.hash`), light)
	wait(t, again, `document.querySelector(".terminal").textContent.includes("expires_in_ms")`)
}

// logs are made in the page: 30 people who each load 1 to 15 files together, 24 times a day, and maybe a scraper.
const logs = `(scraper, line) => Array.from({ length: 10800 + scraper }, (_, i) => {
	const page = Math.floor(i / 15), [at, who] = i < 10800 ? [page * 120, "10.0.0." + page % 30] : [(i - 10800) * 0.96, "192.0.2.9"];
	return i % 15 > page % 30 / 2 && i < 10800 ? "" : line(new Date(18e11 + at * 1000).toISOString(), who);
}).filter(Boolean).join("\n")`

const (
	clf     = `(at, who) => who + " - - [" + at.slice(8, 10) + "/Jan/2027:" + at.slice(11, 19) + " +0000] \"GET /a[]= HTTP/1.1\" 200 1 \"-\" \"curl/8\""`
	caddy   = `(at, who) => JSON.stringify({ ts: Date.parse(at) / 1000, logger: "http.log.access.log0", request: { remote_ip: "10.9.9.9", client_ip: who, headers: { "User-Agent": ["a"] } }, status: 200 })`
	traefik = `(at, who) => JSON.stringify({ ClientAddr: who + ":" + at.slice(17, 19), ClientHost: who, StartUTC: at.replace("Z", "456789Z"), level: "info", time: at.slice(0, 19) + "Z" })`
)

// Each log ends in one recommendation, which no robot changes. A file that isn't a log is refused in one sentence.
func TestPage_log(t *testing.T) {
	ctx := browse(t, "#log", light)
	said := func(selector string) string {
		return strings.ReplaceAll(evaluate[string](t, ctx, `[...document.querySelectorAll("`+selector+`")].map((e) => e.textContent).join("\n")`), "\u00a0", " ")
	}
	done := `document.querySelector("[data-done]") !== null`
	wait(t, ctx, done)
	require.Equal(t, "An example: 5,606 calls of 41 users in 30 min.", said(".lead [role=status]"))
	drop := func(lines, until string) {
		evaluate[bool](t, ctx, `(() => {
			const data = new DataTransfer();
			delete document.querySelector("[data-done]")?.dataset.done;
			data.items.add(new File([`+lines+`], "access.log"));
			document.querySelector("[type=file]").files = data.files;
			return document.querySelector("[type=file]").dispatchEvent(new Event("change"));
		})()`)
		wait(t, ctx, until)
	}
	drop(`"{\"json\": 1}\nnothing\n"`, `document.querySelector(".panel .error").textContent.startsWith("No line has a time that the page can read.")`)
	drop(`"\"2027-01-15 09:00:00\";bob\n1800003600.5,bob\n1800003601000\tann\n\nhead,er\n10.0.0.1 - - [15/Jan/2027:02:00:02 -0700] \"GET / HTTP/1.1\" 200 1"`, done)
	require.Equal(t, "access.log: 4 calls of 3 users in 2 s. 1 line without a time or a user, or past the bounds, left out.", said(".lead [role=status]"))
	const leftOut = " of the calls and looks like a robot, or like many people behind one address, so it was left out when this burst was chosen. Only a burst of "
	for _, c := range [][3]string{ // calls of the scraper and format; what is read; what is denied and the warning
		{"0, " + clf, "5,760 calls of 30 users", "0 of 30 users (0 %) and 0 of 5,760 calls (0 %).\n"},
		{"51840, " + clf, "57,600 calls of 31 users", "1 of 31 users (3.2 %) and 43,531 of 57,600 calls (76 %). Denied most: 192.0.2.9, 43,531 of 51,840 calls (84 %).\n192.0.2.9 makes 90 %" + leftOut + "43,546 would deny nobody. "},
		{"640, " + caddy, "6,400 calls of 31 users", "1 of 31 users (3.2 %) and 523 of 6,400 calls (8.2 %). Denied most: 192.0.2.9, 523 of 640 calls (82 %).\n192.0.2.9 makes 10 %" + leftOut + "538 would deny nobody. "},
		{"5760, " + traefik, "11,520 calls of 31 users", "1 of 31 users (3.2 %) and 4,824 of 11,520 calls (42 %). Denied most: 192.0.2.9, 4,824 of 5,760 calls (84 %).\n192.0.2.9 makes 50 %" + leftOut + "4,839 would deny nobody. "},
	} {
		drop("("+logs+")("+c[0]+")", done)
		require.Equal(t, "access.log: "+c[1]+" in 24 h.", said(".lead [role=status]"))
		require.Equal(t, "Recommended: a burst of 15\nWith 10 per minute for each user, it denies "+c[2], said(".lane-head h2, .verdict, .lanes .warn"))
	}
	require.Equal(t, "CONFIG SET gothrottle.policies \"api THROTTLE 14 10 1m\"\nGO.THROTTLE api:$user 14 10 60\napi := client.Rate(\"api\", throttle.PerMinute(10).Burst(15))", said(".lanes pre"))
}

// Where the focus is, and whether it can be seen.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e);
	e.dataset.reached = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ? "seen" : "unseen";
	return e === document.body;
})()`

// The controls that were not reached, or were reached without showing it.
const notReached = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
	.filter((e) => e.checkVisibility() && !e.disabled && e.dataset.reached !== "seen").map((e) => e.outerHTML.slice(0, 120))`

var views = []string{"#story/1", "#story/3", "#story/7", "#try?c=GO.THROTTLE+k+4+1+1&c=GO.ALL+k:%24client+THROTTLE+4+5+1+THROTTLE+9+9+9&own=500", "#log", "#console"}

// axe finds no fault in any view, in light, in dark and on a phone. Nothing is wider than the phone. Tab reaches every
// control, and each shows that it has the focus.
func TestAccessibility(t *testing.T) {
	for _, l := range looks {
		for _, view := range views {
			ctx := browse(t, view, l)
			wait(t, ctx, `!location.hash.startsWith("#log") || document.querySelector("[data-done]") !== null`) // the results have controls
			evaluate[bool](t, ctx, `document.querySelector(".story .stage")?.stage.hold(2300), document.querySelectorAll("details").forEach((d) => { d.open = true; }), document.querySelector(".command")?.focus(), true`)
			axe, err := os.ReadFile(os.Getenv("GOTHROTTLE_AXE"))
			require.NoError(t, err)
			evaluate[bool](t, ctx, string(axe)+";true")
			require.Empty(t, evaluate[[]string](t, ctx, `axe.run(document, { resultTypes: ["violations"] })
				.then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200) + " " + n.any.map((a) => a.message).join()).join("\n")))`), l.name+view)
			require.LessOrEqual(t, evaluate[int64](t, ctx, `document.documentElement.scrollWidth`), l.width, l.name+view)
			if l != light {
				continue
			}
			for stop, atEnd := 0, false; stop < 30 || !atEnd && stop < 120; stop++ {
				press(t, ctx, kb.Tab)
				atEnd = evaluate[bool](t, ctx, focused)
			}
			require.Empty(t, evaluate[[]string](t, ctx, notReached), view)
		}
	}
}
