package ui

import (
	"os"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// axeFile is where scripts/install-deps puts axe-core.
const axeFile = "/usr/local/share/zklock-test/axe.min.js"

// TestPagesAreAccessible checks each view by axe-core, in both color schemes, on a desktop and
// on a phone.
func TestPagesAreAccessible(t *testing.T) {
	axe, err := os.ReadFile(axeFile)
	if err != nil {
		harness.SkipOrFail(t, "axe-core is not installed")
	}
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL + "log")
	b.Shows("#live", "live") // the log shows later events
	createThreeLocks(t, s)
	createDeadlock(t, s)
	b.Open(s.URL)
	b.Shows(".locks .row .reason", "deadlock")
	check := func(view string) {
		t.Helper()
		Eval[any](b, string(axe)+"; null")
		found := Eval[[]string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations
			.filter((v) => v.impact === "serious" || v.impact === "critical")
			.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")))`)
		if len(found) > 0 {
			t.Errorf("%s:\n%s", view, strings.Join(found, "\n"))
		}
	}
	for _, width := range []int64{1440, 390} {
		for _, dark := range []bool{false, true} {
			b.Size(width, 900)
			b.Dark(dark)
			for address, ready := range map[string]string{
				"":                               ".locks .row .reason",
				"?group=1":                       ".row.group",
				"?q=nothing":                     ".none strong",
				"lock?path=/zklock/x/a":          ".deadlock .ring",
				"lock?path=/zklock/cron/nightly": ".stop",
				"lock?path=/zklock/catalog":      ".stop",
				"sessions":                       ".sessions .row",
				"history":                        ".chart:not([hidden]) rect",
				"log":                            ".log .row",
				"unknown/address":                ".none h1",
			} {
				b.Open(s.URL + address)
				b.Until(`document.querySelector("` + ready + `") !== null`)
				check(address)
			}
			session := Eval[string](b, `fetch("`+s.URL+`sessions?format=json").then((r) => r.json()).then((a) => a.sessions[0].id)`)
			b.Open(s.URL + "session?id=" + session)
			b.Until(`document.querySelector(".stop") !== null`)
			check("session")
			b.Open(s.URL + "lock?path=/zklock/cron/nightly")
			b.Until(`document.querySelector(".holder [data-act=break]") !== null`)
			b.Click(".holder [data-act=break]")
			b.Shows("dialog .command", "zklock break")
			check("the dialog")
		}
	}
}
