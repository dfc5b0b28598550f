package ui

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// focused is what has the focus.
const focused = `(document.activeElement.innerText ?? "")`

// TestKeyboard: all of the page without a mouse.
func TestKeyboard(t *testing.T) {
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
	listed(t, b, three...)
	b.Press("/", "c", "r", "o", "n")
	listed(t, b, "/zklock/cron/nightly")
	b.Press(kb.Enter, kb.Enter) // to the first that was found, and to its page
	b.Shows("h1", "/zklock/cron/nightly")
	b.Shows("main", "web-2:202") // the queue comes after the name
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

// TestBrowsersBack: the browser's own way back leads through the page as it was.
func TestBrowsersBack(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	threeLocks(t, s)
	b.Open(s.URL + "?only=queued")
	listed(t, b, "/zklock/cron/nightly")
	b.Click(".locks .row")
	b.Shows("h1", "/zklock/cron/nightly")
	Eval[any](b, "history.back()")
	listed(t, b, "/zklock/cron/nightly")
	Eval[any](b, "history.forward()")
	b.Shows("h1", "/zklock/cron/nightly")
	b.Click("a[data-back]")
	listed(t, b, "/zklock/cron/nightly")
}

// TestColors: as the system has them, or as one chooses, and so the next time.
func TestColors(t *testing.T) {
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
	b.Press("t", "t") // light, dark
	theme("dark")
	b.Open(s.URL + "history")
	theme("dark")
	b.Click("#theme") // as the system
	theme("light")
}
