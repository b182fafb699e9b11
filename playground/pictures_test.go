package main

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// mixed is the view of a limiter under the calls of docs/choosing.md.
const mixed = "#try?t=mixed&s=100&c="

// pictures are the views that the pages show.
var pictures = map[string]string{
	"choosing-funnel.svg":   "#story/1",
	"playground.svg":        "#story/7",
	"choosing-edge.svg":     "#story/3",
	"choosing-login.svg":    "#story/4",
	"choosing-force.svg":    "#story/5",
	"choosing-share.svg":    "#story/6",
	"choosing-holds.svg":    "#try?t=holds&s=24&c=GO.ALL+bob+QUOTA+1000+9d+0+KEY+h+LEASE+1000+8s+r$n+300+SHARE+1",
	"choosing-throttle.svg": mixed + "GO.THROTTLE+key+9+10+20s",
	"choosing-window.svg":   mixed + "GO.WINDOW+key+10+20s",
	"choosing-quota.svg":    mixed + "GO.QUOTA+key+10+20s+1+ALIGN+0",
	"choosing-lease.svg":    mixed + "GO.LEASE+jobs+10+8s+job-$n",
	"choosing-reserve.svg":  mixed + "GO.THROTTLE+key+9+10+20s+MS+RESERVE+8s",
	"choosing-lockout.svg":  mixed + "GO.THROTTLE+key+9+10+20s+LOCKOUT+15s",
	"choosing-all.svg":      mixed + "GO.ALL+key+THROTTLE+9+10+20s+THROTTLE+15+16+80s",
}

// draw returns the charts of a view as one picture. That of the first scene is a funnel, that of the last one a moving funnel.
const draw = `(async () => {
	const { stage } = document.querySelector(".stage"), picture = stage.funnel?.picture;
	stage.hold(stage.played.end);
	if (location.hash === "#story/1") {
		stage.scene.traffic = "bursts 8 60";
		stage.again();
		stage.move(1250);
	}
	const { svg } = await import("./dom.js"), css = await (await fetch("chart.css")).text();
	const colours = (place, rules) => rules.replaceAll(/light-dark\((.+?), (.+?)\)(?=;)/g, place);
	const style = svg("style", {}, colours("$1", css) + "text { font-family: system-ui, sans-serif; fill: var(--text); }\n",
		"@media (prefers-color-scheme: dark) { " + colours("$2", css.slice(0, css.indexOf("}") + 1)) + " }");
	let y = 8;
	const ids = [];
	const shown = picture && /[17]$/.test(location.hash) ? [picture] : [...document.querySelectorAll(".lane .chart")];
	const lanes = shown.flatMap((drawing, i) => {
		const lane = stage.lanes[i].card, line = stage.lanes[i].result.command;
		const chart = drawing.cloneNode(true), [, , width, height] = chart.getAttribute("viewBox").split(" ");
		for (const e of chart.querySelectorAll(".touch, .cursor, .window")) e.remove();
		if (location.hash === "#story/7") {
			y += Number(height) + 54;
			return film(stage, chart, svg, style);
		}
		for (const [name, value] of Object.entries({ x: 12, y: y + 26, width, height })) chart.setAttribute(name, value);
		y += 34 + Number(height);
		return [svg("text", { x: 20, y: chart.getAttribute("y") - 6, "font-weight": 600 }, [lane.querySelector("h2").textContent, line].slice(line.length > 60 ? 1 : 0).join(": ")),
			svg("text", { x: Number(width), y: chart.getAttribute("y") - 6, "text-anchor": "end" }, [...lane.querySelectorAll(".counts span")].map((e) => e.textContent).join(", ")), chart];
	});
	const width = Number(lanes.at(-1).getAttribute("width")) + 24;
	return new XMLSerializer().serializeToString(svg("svg", { viewBox: "0 0 " + width + " " + (y + 8), width, height: y + 8 }, style, svg("rect", { width, height: y + 8, rx: 14, fill: "var(--card)" }), ...lanes))
		.replaceAll(/(chart|funnel)-\d+/g, (id) => "p" + (ids.includes(id) ? ids.indexOf(id) : ids.push(id) - 1)).replaceAll(/\d+\.\d{3,}/g, (n) => String(Number(Number(n).toFixed(1)))) + "\n";
})()`

// film makes strips of all instants of a scene, drawings and words, and moves them past, unless the reader wants no motion.
const film = `function film(stage, chart, svg, style) {
	const { water, drops, level, middle } = stage.funnel.all[0], bottom = Number(chart.getAttribute("height"));
	const said = ["Each request holds an estimate of a budget, then settles its cost.", "One crashes while it holds 300. The next requests no longer fit.", "Its hold lapses: nothing was charged, and nobody is locked out."];
	for (const part of [water, drops, level]) chart.children[[...part.parentNode.children].indexOf(part)].replaceChildren();
	const strip = (name, draw) => {
		const frames = [];
		for (let at = 600; at < 24600; at += 120) {
			stage.move(at);
			const frame = draw(at);
			for (const part of frame.querySelectorAll("[data-at]")) part.removeAttribute("data-at");
			if (frame.innerHTML !== frames.at(-1)?.frame.innerHTML) frames.push({ at, frame });
		}
		frames.forEach(({ frame }, i) => frame.setAttribute("transform", "translate(" + i * 999 + ")"));
		style.append("." + name + " { animation: " + name + " 24s step-end infinite; }\n@keyframes " + name + " { " + frames.map(({ at }, i) => ((at - 600) / 240).toFixed(1) + "% { transform: translate(" + -i * 999 + "px); }").join(" ") +
			" }\n@media (prefers-reduced-motion: reduce) { ." + name + " { animation: none; transform: translate(" + -999 * frames.findLastIndex(({ at }) => at < 17500) + "px); } }\n");
		return svg("g", { class: name }, ...frames.map(({ frame }) => frame));
	};
	const text = (y, name, words) => svg("text", { x: 282, y, "text-anchor": "middle", class: name }, words);
	chart.querySelector("g").append(strip("film", () => svg("g", {}, water.cloneNode(true), drops.cloneNode(true))));
	for (const [name, value] of Object.entries({ viewBox: [middle - 270, 0, 540, bottom].join(" "), x: 12, y: 58, width: 540 })) chart.setAttribute(name, value);
	style.append(".code { font-family: monospace; font-size: .8125rem; }\n");
	return [svg("g", { class: "chart" }, strip("words", (at) => svg("g", {}, text(26, "level", said[at < 10000 ? 0 : at < 18000 ? 1 : 2]), text(48, "code", stage.lanes[0].line.textContent), text(bottom + 38, "level", level.textContent)))), chart];
}`

// admitted returns how many of the mixed calls are admitted, as docs/choosing.md's table of bounds has it.
const admitted = `(async () => {
	const { play, readLink } = await import("./scene.js");
	const at = play(readLink(location.hash, {})).lanes[0].calls.filter((call) => !call.denied).map((call) => call.at);
	return at.filter((at) => at === 24500).length + " | " + at.filter((at) => at > 54000 && at < 74000).length;
})()`

// The pictures of the pages are what a reader of the page sees, in the colours that the reader's system prefers. docs/choosing.md
// says how many calls of the burst and of the overload each limiter admits.
func TestPictures(t *testing.T) {
	choosing, err := os.ReadFile("../docs/choosing.md")
	require.NoError(t, err)
	ctx := browse(t, "#console", alive)
	for name, view := range pictures {
		visit(t, ctx, view)
		picture, file := evaluate[string](t, ctx, film+draw), "../docs/"+name
		if os.Getenv("DRAW") != "" {
			require.NoError(t, os.WriteFile(file, []byte(picture), 0o644))
		}
		drawn, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, string(drawn) == picture, "docs/%s is not what the page draws: run DRAW=1 build/test-playground.sh -run Pictures", name)
		if strings.HasPrefix(view, mixed) {
			section, _, _ := strings.Cut(string(choosing), "("+name+")\n")
			heading, _, _ := strings.Cut(section[strings.LastIndex(section, "\n## ")+4:], "\n")
			row := "\n| " + heading + " | " + evaluate[string](t, ctx, admitted) + " | "
			require.True(t, strings.Contains(string(choosing), row), "docs/choosing.md lacks the row %q", row)
		}
	}
	if os.Getenv("DRAW") != "" { // what the page's meta tags show
		ctx = browse(t, "#story/1", look{name: "preview", width: 1000, height: 525})
		evaluate[string](t, ctx, film+draw)
		require.NoError(t, os.WriteFile("page/preview.png", do(t, ctx, chromedp.CaptureScreenshot()), 0o644))
	}
}
