package ui

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkui"
)

// secret is the access token of the tests' servers.
const secret = "correct horse battery staple"

// withToken permits actions with the token.
func withToken(o *zkui.Options) { o.Token = secret }

// openDialog opens a lock's page and the dialog of a button.
func openDialog(t *testing.T, b *Browser, s *Site, lock, button string) {
	t.Helper()
	b.Open(s.URL + "lock?path=/zklock/" + lock)
	b.Until(fmt.Sprintf(`document.querySelector(".holder [data-act=%s]")?.disabled === false`, button))
	b.Click(fmt.Sprintf(".holder [data-act=%s]", button))
	b.Shows("dialog", "fencing token")
}

func TestBreakNeedsFencingAndAccessToken(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	stuck := NewPeer(t, s.Server, named("stuck", 1, "sleep"))
	next := NewPeer(t, s.Server, named("next", 2, "work"))
	hold := stuck.Hold(stuck.Mutex("db"))
	waits := next.Wait(next.Mutex("db"))
	openDialog(t, b, s, "db", "break")

	// The button is disabled until the user types the hold's token and an access token.
	disabled := `document.querySelector("dialog [type=submit]").disabled`
	b.Type("dialog [name=secret]", "wrong")
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token()+1, 10))
	if !Eval[bool](b, disabled) {
		t.Error("the dialog accepts another hold's token")
	}
	Eval[string](b, `document.querySelector("dialog [name=typed]").value = ""`)
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token(), 10))
	if Eval[bool](b, disabled) {
		t.Fatal("the dialog does not accept the hold's token")
	}

	// The server rejects a wrong access token.
	b.Click("dialog [type=submit]")
	b.Until(`document.querySelector("dialog .wrong").innerText !== ""`)
	if hold.Err() != nil {
		t.Fatalf("a wrong access token broke the hold: %v", hold.Err())
	}
	Eval[string](b, `document.querySelector("dialog [name=secret]").value = ""`)
	b.Type("dialog [name=secret]", secret)
	b.Click("dialog [type=submit]")
	b.Shows("#said", "The hold was broken")
	await(t, waits)
	b.Shows(".holder h2", "next:2")
	<-hold.Done()
	if !errors.Is(hold.Err(), zklock.ErrLost) {
		t.Errorf("the broken hold reports %v, want ErrLost", hold.Err())
	}
	b.Until(`[...document.querySelectorAll(".totals div")].some((d) => d.innerText.replace(/\s+/g, " ") === "Losses 1")`)
}

// TestBreakDoesNotAffectNextHold checks that the dialog for one hold cannot break the next.
func TestBreakDoesNotAffectNextHold(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	one, two := NewPeer(t, s.Server, named("one", 1, "work")), NewPeer(t, s.Server, named("two", 2, "work"))
	first := one.Hold(one.Mutex("db"))
	waits := two.Wait(two.Mutex("db"))
	openDialog(t, b, s, "db", "break")
	b.Type("dialog [name=typed]", strconv.FormatInt(first.Token(), 10))
	b.Type("dialog [name=secret]", secret)
	release(t, first)
	second := await(t, waits)
	b.Click("dialog [type=submit]")
	b.Until(`document.querySelector("dialog .wrong").innerText !== ""`)
	if err := second.Verify(t.Context()); err != nil {
		t.Errorf("the next hold was broken: %v", err)
	}
}

// requestRelease completes and submits the dialog of a release request. The wait is in seconds.
func requestRelease(b *Browser, hold *zklock.Hold, wait int, reason string, thenBreak bool) {
	b.t.Helper()
	b.Set("dialog [name=wait]", strconv.Itoa(wait))
	b.Set("dialog [name=reason]", reason)
	if thenBreak {
		b.Click("dialog [name=break]")
	}
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token(), 10))
	b.Set("dialog [name=secret]", secret)
	b.Click("dialog [type=submit]")
}

func closeDialog(b *Browser) {
	b.t.Helper()
	Eval[any](b, `document.querySelector("dialog").close()`)
	b.Until(`document.querySelector("dialog") === null`)
}

func TestReleaseRequestReachesHolder(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	p := NewPeer(t, s.Server, named("polite", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	openDialog(t, b, s, "db", "revoke")
	const reason = "<b>backup\u202e</b>"
	requestRelease(b, hold, 0, reason, false)
	b.Shows("#said", "asked")
	<-hold.Revoked()
	if r, err := hold.ReleaseRequest(t.Context()); err != nil || r.By.User != "page" || r.Reason != `<b>backup\u202e</b>` {
		t.Errorf("the holder reads %+v, %v", r, err)
	}
	// The page shows the requester and the reason, as text.
	for _, part := range []string{".holder", "#release-requested", ".events"} {
		b.Shows(part, `<b>backup\u202e</b>`)
		b.Shows(part, "page@")
	}
	b.Open(s.URL + "log")
	b.Shows(".log .row", `<b>backup\u202e</b>`)
	if hold.Err() != nil {
		t.Errorf("the request ended the hold: %v", hold.Err())
	}
}

// TestRevokeDialogShowsProgressAndOutcome waits for a release, for a timeout, and for a break.
func TestRevokeDialogShowsProgressAndOutcome(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	p, q := NewPeer(t, s.Server, named("polite", 1, "work")), NewPeer(t, s.Server, named("next", 2, "work"))
	hold := p.Hold(p.Mutex("db"))
	waits := q.Wait(q.Mutex("db"))
	openDialog(t, b, s, "db", "revoke")
	b.Shows("dialog [type=submit]", "Ask and wait")
	requestRelease(b, hold, 300, "backup", true)
	b.Shows("dialog", "polite:1 holds the lock with token")
	b.Shows("dialog", "seconds left")
	b.Shows("dialog .command", fmt.Sprintf("zklock revoke /zklock/db --token %d --wait 300s --then-break --reason backup", hold.Token()))
	<-hold.Revoked()
	release(t, hold)
	next := await(t, waits)
	b.Shows("dialog .outcome", "Released: polite:1 released the lock.")
	closeDialog(b)

	// After the timeout, the server breaks the hold only if the user chose it.
	for _, thenBreak := range []bool{false, true} {
		b.Click(".holder [data-act=revoke]")
		requestRelease(b, next, 1, "", thenBreak)
		if !thenBreak {
			b.Shows("dialog .outcome", "Still held: next:2 did not release the lock within 1 second.")
			if err := next.Verify(t.Context()); err != nil {
				t.Fatalf("the hold ended: %v", err)
			}
			closeDialog(b)
		}
	}
	b.Shows("dialog .outcome", "Broken: next:2 lost the lock")
	<-next.Done()
}

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestClosedDialogBreaksNothing checks that a wait ends with its dialog or tab, and then breaks
// no hold.
func TestClosedDialogBreaksNothing(t *testing.T) {
	lines := make(logLines, 1000)
	b := StartBrowser(t)
	s := Serve(t, withToken, func(o *zkui.Options) { o.Logger = slog.New(slog.NewTextHandler(lines, nil)) })
	p := NewPeer(t, s.Server, named("slow", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	for name, leave := range map[string]func(){
		"dialog": func() { b.Click("dialog .buttons button") },
		"tab":    func() { b.Open("about:blank") },
	} {
		openDialog(t, b, s, "db", "revoke")
		requestRelease(b, hold, 300, "", true)
		b.Shows("dialog", "seconds left")
		<-hold.Revoked()
		leave()
		// Only the wait could break the hold, and the server ends it.
		for line := ""; !strings.Contains(line, "msg=revoke") || !strings.Contains(line, "context canceled"); {
			line = <-lines
		}
		if err := hold.Verify(t.Context()); err != nil {
			t.Errorf("%s: the hold ended: %v", name, err)
		}
	}
}

// TestLostBrowserBreaksNothing checks a browser that requests the break too late after the
// wait, or that gets no reply from the page's server.
func TestLostBrowserBreaksNothing(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	p := NewPeer(t, s.Server, named("slow", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	for name, c := range map[string]struct{ fetch, says string }{
		"suspended": {`address === "./break" ? real(address, { ...options, body: options.body.replace(/"before":"[^"]*"/, '"before":"2026-01-01T00:00:00Z"') }) : real(address, options)`,
			"the wait ended too long ago"},
		"network lost":   {`address === "./revoke" ? Promise.reject(new TypeError()) : real(address, options)`, "Nothing was broken"},
		"another answer": {`address === "./revoke" ? new Response("Log in to this network") : real(address, options)`, "Nothing was broken"},
	} {
		openDialog(t, b, s, "db", "revoke")
		Eval[any](b, `{ const real = fetch; window.fetch = async (address, options) => `+c.fetch+` }`)
		requestRelease(b, hold, 1, "", true)
		b.Shows("dialog .wrong", c.says)
		if err := hold.Verify(t.Context()); err != nil {
			t.Errorf("%s: the hold ended: %v", name, err)
		}
	}
}

// TestClosedDialogReportsBreak: the user cannot stop a break in flight, so the page reports
// its outcome after the dialog is closed.
func TestClosedDialogReportsBreak(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	p := NewPeer(t, s.Server, named("stuck", 1, "work"))
	for button, during := range map[string]string{"break": "dialog .buttons button", "revoke": "dialog .waits"} {
		hold := p.Hold(p.Mutex(button))
		openDialog(t, b, s, button, button)
		Eval[any](b, `{ const real = fetch; window.fetch = async (address, options) => {
			if (address === "./break") await new Promise((sent) => { window.sent = sent; });
			return real(address, options);
		} }`)
		requestRelease(b, hold, map[string]int{"revoke": 1}[button], "", button == "revoke")
		b.Until("window.sent !== undefined")
		b.Shows(during, map[string]string{"break": "Close", "revoke": "Breaking the hold"}[button])
		b.Press(kb.Escape)
		b.Until(`document.querySelector("dialog") === null`)
		Eval[any](b, "window.sent()")
		b.Shows("#said", map[string]string{"break": "The hold was broken", "revoke": "Broken: stuck:1 lost the lock"}[button])
		<-hold.Done()
	}
}

// TestReleaseRequestIsNotSentToLibraryThatIgnoresIt checks that the page explains this, and
// that the server rejects the request and writes nothing.
func TestReleaseRequestIsNotSentToLibraryThatIgnoresIt(t *testing.T) {
	b := StartBrowser(t)
	for name, edit := range map[string]func(*zkui.Options){"actions": withToken, "read-only": func(*zkui.Options) {}} {
		t.Run(name, func(t *testing.T) {
			s := Serve(t, edit)
			z := s.Server.Dial(t)
			const node = "/zklock/db/0f8fad5bd9cb469fa16570867728950e__lock__"
			for _, path := range []string{"/zklock", "/zklock/db"} {
				create(t, z, path, nil, zk.ModePersistent)
			}
			created, stat, err := z.Create(t.Context(), node, []byte("worker-3"), nil, zk.ModeEphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			b.Open(s.URL + "lock?path=/zklock/db")
			b.Until(`document.querySelector(".holder [data-act=revoke]")?.disabled === false`)
			b.Click(".holder [data-act=revoke]")
			b.Shows("dialog", "kazoo lock ignores release requests, so worker-3 cannot be asked")
			if n := Eval[int](b, `document.querySelectorAll("dialog [name=reason], dialog [name=wait]").length`); n != 0 {
				t.Error("the dialog offers a release request")
			}
			if name == "actions" {
				b.Shows("dialog [type=submit]", "Break the hold now")
			} else {
				b.Shows("dialog .command", fmt.Sprintf("zklock break /zklock/db --token %d", stat.Czxid))
			}
			answer := Eval[string](b, fmt.Sprintf(`fetch("./revoke", {method: "POST",
				headers: {"Content-Type": "application/json", Authorization: "Bearer %s"},
				body: JSON.stringify({path: "/zklock/db", node: "%s", token: "%d"})}).then((r) => r.text())`, secret, created, stat.Czxid))
			if name == "actions" && !strings.Contains(answer, "its library ignores release requests") {
				t.Errorf("the server answered %s", answer)
			}
			if data, now, err := z.Get(t.Context(), created); err != nil || string(data) != "worker-3" || now.Version != 0 {
				t.Errorf("the znode has %q, version %d, %v", data, now.Version, err)
			}
		})
	}
}

// TestOfferedCommandsHaveTheLayout checks that the commands that the page offers have its custom
// layout: without it, they would find no such lock.
func TestOfferedCommandsHaveTheLayout(t *testing.T) {
	layout := zklock.Layout{Prefix: "v1", Exclusive: "_lock_", Shared: "_read_", InParent: true}
	const flag = "--layout 'custom:exclusive=_lock_,shared=_read_,prefix=v1,in-parent'"
	b, s := StartBrowser(t), Serve(t, func(o *zkui.Options) { o.Layout = layout })
	b.Open(s.URL)
	b.Shows(".offer", "zklock run "+flag+" demo -- sleep 60")
	c := zklock.New(s.Server.Dial(t), &zklock.Options{Layout: layout})
	defer c.Close()
	lock := c.Mutex("jobs/printer")
	hold, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Open(s.URL + "lock?path=" + lock.Path())
	b.Shows(".holder", strconv.FormatInt(hold.Token(), 10))
	for _, action := range []string{"break", "revoke"} {
		b.Click(".holder [data-act=" + action + "]")
		b.Shows("dialog .command", fmt.Sprintf("zklock %s %s %s --token %d", action, lock.Path(), flag, hold.Token()))
		closeDialog(b)
	}
}

// TestActionsNeedAccessToken checks the page and the server.
func TestActionsNeedAccessToken(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("safe", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	b.Open(s.URL + "lock?path=/zklock/db")
	b.Shows(".holder h2", "safe:1")
	for _, action := range []string{"break", "revoke"} {
		b.Click(".holder [data-act=" + action + "]")
		b.Shows("dialog .command", fmt.Sprintf("zklock %s /zklock/db --token %d", action, hold.Token()))
		b.Shows("dialog", "zklock ui --actions")
		if n := Eval[int](b, `document.querySelectorAll("dialog form, dialog [type=submit]").length`); n != 0 {
			t.Errorf("the dialog of %s has a form", action)
		}
		closeDialog(b)
	}
	for _, action := range []string{"break", "revoke"} {
		status := Eval[int](b, fmt.Sprintf(`fetch("./%s", {method: "POST",
			headers: {"Content-Type": "application/json", Authorization: "Bearer anything"},
			body: JSON.stringify({path: "/zklock/db", token: "%d"})}).then((r) => r.status)`, action, hold.Token()))
		if status != 403 {
			t.Errorf("%s without an access token was answered with %d, want 403", action, status)
		}
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Errorf("the hold ended: %v", err)
	}
}
