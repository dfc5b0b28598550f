package ui

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// focused is the text of the element with the focus.
const focused = `(document.activeElement.innerText ?? "")`

func TestKeyboardNavigation(t *testing.T) {
	b, _ := listOfThree(t)
	b.Press("j", "j")
	b.Until(focused + `.includes("nightly")`)
	b.Press("k")
	b.Until(focused + `.includes("catalog")`)
	b.Press(kb.End)
	b.Until(focused + `.includes("vacuum")`)
	b.Press(kb.Enter)
	b.Shows("h1", "/zklock/db/vacuum")
	b.Press(kb.Escape)
	waitForList(t, b, three...)
	b.Press("/", "c", "r", "o", "n")
	waitForList(t, b, "/zklock/cron/nightly")
	b.Press(kb.Enter, kb.Enter) // focus the first match, then open its page
	b.Shows("h1", "/zklock/cron/nightly")
	b.Shows("main", "web-2:202") // the page shows the queue after the name
	b.Press("j")
	b.Until(focused + `.includes("web-2:202")`)
	b.Press(kb.Enter)
	b.Shows("dialog", "position 1 in the queue")
	b.Press(kb.Escape)
	b.Until(`document.querySelector("dialog") === null`)
	b.Press("2")
	b.Until(`document.querySelector('[data-tab="sessions"]').getAttribute("aria-current") === "page"`)
	b.Press("3")
	b.Until(`document.querySelector('[data-tab="history"]').getAttribute("aria-current") === "page"`)
	b.Press("4")
	b.Until(`document.querySelector('[data-tab="log"]').getAttribute("aria-current") === "page"`)
	b.Press("1")
	b.Until(`document.querySelector('[data-tab="list"]').getAttribute("aria-current") === "page"`)
}

func TestBrowserHistoryRestoresViews(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	b.Open(s.URL + "?only=queued")
	waitForList(t, b, "/zklock/cron/nightly")
	b.Click(".locks .row")
	b.Shows("h1", "/zklock/cron/nightly")
	Eval[any](b, "history.back()")
	waitForList(t, b, "/zklock/cron/nightly")
	Eval[any](b, "history.forward()")
	b.Shows("h1", "/zklock/cron/nightly")
	b.Click("a[data-back]")
	waitForList(t, b, "/zklock/cron/nightly")
}

// TestColorScheme checks that the page uses the system's colors, or those that the user chose
// earlier.
func TestColorScheme(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	theme := func(want string) {
		t.Helper()
		b.Until(`document.documentElement.dataset.theme === "` + want + `"`)
	}
	b.Dark(true)
	b.Open(s.URL)
	theme("dark")
	b.Dark(false)
	theme("light")
	b.Press("t", "t") // light, then dark
	theme("dark")
	b.Open(s.URL + "history")
	theme("dark")
	b.Click("#theme") // the system's colors
	theme("light")
}
