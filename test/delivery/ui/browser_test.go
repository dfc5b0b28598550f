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

// patience limits each wait for an expected event.
const patience = 5 * time.Minute

// A Browser is a window of Chromium with its own profile. A method that fails also fails the
// test.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex // guards errors
	errors []string
}

// StartBrowser starts a browser, which ends with the test. An error in the browser fails the
// test.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	path := needBrowser(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile(t)),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"), // for identical screenshots
		chromedp.Env("TZ=UTC"),
		chromedp.WSURLReadTimeout(patience), // a busy machine starts it slowly
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root cannot have a sandbox
	}
	ctx, kill := chromedp.NewExecAllocator(t.Context(), options...)
	// The driver reports events that it does not know.
	ctx, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	b := &Browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		end()
		kill()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.errors {
			t.Errorf("error in the browser: %s", e)
		}
	})
	chromedp.ListenTarget(ctx, b.listen)
	b.Size(1360, 850)
	return b
}

// profile returns a directory for the browser's files. Helper processes write there after the
// browser has ended, so the cleanup retries and reports no error.
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

// needBrowser returns the path of Chromium, and skips or fails the test without it.
func needBrowser(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		harness.SkipOrFail(t, "chromium is not installed")
	}
	return path
}

// listen records errors. It runs on the driver's goroutine, one call at a time, until the
// browser ends.
func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.addError(e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
			b.addError(fmt.Sprintf("console: %v", e.Args))
		}
	case *log.EventEntryAdded:
		// Network errors include HTTP statuses such as 403, which tests check.
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
			b.addError(e.Entry.Text)
		}
	}
}

func (b *Browser) addError(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, text)
}

// do runs actions. what describes them in an error.
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

// Before runs a script in each page opened later, before the page's own scripts.
func (b *Browser) Before(script string) {
	b.t.Helper()
	b.do("script", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// Size sets the size of the window in pixels. A narrow window emulates a phone.
func (b *Browser) Size(width, height int64) {
	b.t.Helper()
	phone := width < 600
	b.do("size", emulation.SetDeviceMetricsOverride(width, height, 1, phone), emulation.SetTouchEmulationEnabled(phone))
}

// Dark sets the system's color scheme.
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

// Eval evaluates a JavaScript expression on the page. If it is a promise, Eval waits for its
// value.
func Eval[T any](b *Browser, js string) T {
	b.t.Helper()
	var value T
	b.do(js, chromedp.Evaluate(js, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return value
}

// Until waits until a JavaScript expression is true on the page, and returns the time it took.
func (b *Browser) Until(js string) time.Duration {
	b.t.Helper()
	began := time.Now()
	poll := chromedp.Poll(js, nil, chromedp.WithPollingInterval(10*time.Millisecond), chromedp.WithPollingTimeout(patience))
	err := chromedp.Run(b.ctx, poll)
	for err != nil && leftPage(err) && time.Since(began) < patience {
		err = chromedp.Run(b.ctx, poll)
	}
	if err != nil {
		b.t.Fatalf("not true on the page: %s: %v\nthe text of the page:\n%s", js, err, b.Text("body"))
	}
	return time.Since(began)
}

// leftPage reports whether an expression failed because the browser opened another document.
func leftPage(err error) bool {
	return strings.Contains(err.Error(), "Inspected target navigated") || strings.Contains(err.Error(), "Cannot find context")
}

// Shows waits until the first element of a selector contains a text.
func (b *Browser) Shows(selector, text string) time.Duration {
	b.t.Helper()
	return b.Until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%s)", selector, strconv.QuoteToASCII(text)))
}

// Text returns the visible text of an element.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? '(no such element)'", selector))
}

// Click clicks on the first element of a selector.
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

// Press presses keys in order: letters, or keys of the driver's package kb.
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		press := chromedp.Action(chromedp.KeyEvent(key))
		if key >= " " && key <= "~" {
			// One event, as from a keyboard, so the page can prevent the input of the letter.
			// The driver would send two.
			press = chromedp.Tasks{
				input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key),
				input.DispatchKeyEvent(input.KeyUp).WithKey(key),
			}
		}
		b.do("press "+key, press)
	}
}

// Screenshot writes the visible part of the page to a file.
func (b *Browser) Screenshot(file string) {
	b.t.Helper()
	var png []byte
	// Wait for a frame.
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
