package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/zklock/zklock/test/harness"
)

// patience is how long something may take that is to happen on the page.
const patience = 5 * time.Minute

// A Browser is a window of Chromium with a profile of its own. Its methods fail
// the test if they fail.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex // guards complaints
	complaints []string
}

// StartBrowser starts one, which ends with the test. What the browser complained of
// by then fails the test.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	path := needBrowser(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile(t)),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"), // pictures are the same everywhere
		chromedp.Env("TZ=UTC"),
		chromedp.WSURLReadTimeout(patience), // a busy machine starts it slowly
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root can't have
	}
	ctx, kill := chromedp.NewExecAllocator(t.Context(), options...)
	// The driver complains of events that are newer than it.
	ctx, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	b := &Browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		end()
		kill()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
	})
	chromedp.ListenTarget(ctx, b.listen)
	b.Size(1360, 850)
	return b
}

// profile is a directory for a browser's files. Its helpers write there for a moment
// after it has ended, so it is removed when they have, and that is no test's affair.
func profile(t testing.TB) string {
	dir, err := os.MkdirTemp("", "zklock-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(patience); os.RemoveAll(dir) != nil && time.Now().Before(end); {
			goruntime.Gosched()
		}
	})
	return dir
}

// needBrowser skips the test where there is none, and says where it is.
func needBrowser(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		harness.SkipOrFail(t, "chromium is not installed")
	}
	return path
}

// listen notes what the browser complains of. It runs on the driver's goroutine,
// one call at a time, until the browser ends.
func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complain(e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
			b.complain(fmt.Sprintf("console: %v", e.Args))
		}
	case *log.EventEntryAdded:
		// An answer of 403 is among the network's, and the tests' own affair.
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
			b.complain(e.Entry.Text)
		}
	}
}

func (b *Browser) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, what)
}

// do runs actions. what they are for is said if they fail.
func (b *Browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// Open opens an address.
func (b *Browser) Open(address string) {
	b.t.Helper()
	b.do("open "+address, chromedp.Navigate(address))
}

// Before runs a script in every page that is opened later, before its own scripts.
func (b *Browser) Before(script string) {
	b.t.Helper()
	b.do("script", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// Size makes the window so large, in pixels; a narrow one is a phone's.
func (b *Browser) Size(width, height int64) {
	b.t.Helper()
	phone := width < 600
	b.do("size", emulation.SetDeviceMetricsOverride(width, height, 1, phone), emulation.SetTouchEmulationEnabled(phone))
}

// Dark chooses the system's colors.
func (b *Browser) Dark(dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	b.do("colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: value},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// Eval returns what a JavaScript expression is on the page; of a promise, what it
// comes to.
func Eval[T any](b *Browser, js string) T {
	b.t.Helper()
	var value T
	b.do(js, chromedp.Evaluate(js, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return value
}

// Until waits until a JavaScript expression is true on the page, and returns how
// long that took.
func (b *Browser) Until(js string) time.Duration {
	b.t.Helper()
	began := time.Now()
	poll := chromedp.Poll(js, nil, chromedp.WithPollingInterval(10*time.Millisecond), chromedp.WithPollingTimeout(patience))
	err := chromedp.Run(b.ctx, poll)
	for err != nil && leftPage(err) && time.Since(began) < patience {
		err = chromedp.Run(b.ctx, poll)
	}
	if err != nil {
		b.t.Fatalf("never true on the page: %s: %v\nthe page says:\n%s", js, err, b.Text("body"))
	}
	return time.Since(began)
}

// leftPage reports whether an expression failed because a click led to another document
// meanwhile.
func leftPage(err error) bool {
	return strings.Contains(err.Error(), "Inspected target navigated") || strings.Contains(err.Error(), "Cannot find context")
}

// Shows waits until a text is within the first element that a selector finds.
func (b *Browser) Shows(selector, text string) time.Duration {
	b.t.Helper()
	return b.Until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%s)", selector, strconv.QuoteToASCII(text)))
}

// Text is what an element says to a reader.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? '(no such element)'", selector))
}

// Click clicks on the first element that a selector finds, as a mouse does.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.Click(selector, chromedp.ByQuery))
}

// Type types into a field.
func (b *Browser) Type(selector, text string) {
	b.t.Helper()
	b.do("type into "+selector, chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Set replaces the text of a field.
func (b *Browser) Set(selector, text string) {
	b.t.Helper()
	Eval[any](b, fmt.Sprintf(`{ const f = document.querySelector(%q); f.value = %s; f.dispatchEvent(new Event("input", { bubbles: true })); }`, selector, strconv.QuoteToASCII(text)))
}

// Press presses keys, one after another: letters, or those of the driver's package kb.
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		press := chromedp.Action(chromedp.KeyEvent(key))
		if key >= " " && key <= "~" {
			// In one event, so that a page that has a use for the key keeps it from
			// being typed, as at a keyboard; the driver sends two.
			press = chromedp.Tasks{
				input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key),
				input.DispatchKeyEvent(input.KeyUp).WithKey(key),
			}
		}
		b.do("press "+key, press)
	}
}

// Picture writes what is seen to a file.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	var png []byte
	// A frame, so that what was asked for is drawn.
	Eval[any](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
	b.do("screenshot", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithOptimizeForSpeed(false).Do(ctx)
		return err
	}))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
