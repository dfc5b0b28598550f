package ui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkui"
)

// secret is the access token of the tests' servers.
const secret = "correct horse battery staple"

// withToken permits actions to users with the token.
func withToken(o *zkui.Options) { o.Token = secret }

// dialogue opens a lock's page and the dialog of a button there.
func dialogue(t *testing.T, b *Browser, s *Site, lock, button string) {
	t.Helper()
	b.Open(s.URL + "lock?path=/zklock/" + lock)
	b.Until(fmt.Sprintf(`document.querySelector(".holder [data-act=%s]")?.disabled === false`, button))
	b.Click(fmt.Sprintf(".holder [data-act=%s]", button))
	b.Shows("dialog", "fencing token")
}

func TestBreak(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	stuck := NewPeer(t, s.Server, named("stuck", 1, "sleep"))
	next := NewPeer(t, s.Server, named("next", 2, "work"))
	hold := stuck.Hold(stuck.Mutex("db"))
	waits := next.Wait(next.Mutex("db"))
	dialogue(t, b, s, "db", "break")

	// Nothing can be done before the very token is typed, and the access token.
	disabled := `document.querySelector("dialog [type=submit]").disabled`
	b.Type("dialog [name=secret]", "wrong")
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token()+1, 10))
	if !Eval[bool](b, disabled) {
		t.Error("another hold's token is enough")
	}
	Eval[string](b, `document.querySelector("dialog [name=typed]").value = ""`)
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token(), 10))
	if Eval[bool](b, disabled) {
		t.Fatal("the hold's token is not enough")
	}

	// The server refuses a wrong access token, and says so.
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
		t.Errorf("the broken hold says %v, want lost", hold.Err())
	}
	b.Until(`[...document.querySelectorAll(".totals div")].some((d) => d.innerText.replace(/\s+/g, " ") === "Losses 1")`)
}

// TestBreakAnother checks that a user who looks at one hold cannot break the next one.
func TestBreakAnother(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	one, two := NewPeer(t, s.Server, named("one", 1, "work")), NewPeer(t, s.Server, named("two", 2, "work"))
	first := one.Hold(one.Mutex("db"))
	waits := two.Wait(two.Mutex("db"))
	dialogue(t, b, s, "db", "break")
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

func TestReleaseRequestReachesHolder(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, withToken)
	p := NewPeer(t, s.Server, named("polite", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	dialogue(t, b, s, "db", "revoke")
	b.Type("dialog [name=typed]", strconv.FormatInt(hold.Token(), 10))
	b.Type("dialog [name=secret]", secret)
	b.Click("dialog [type=submit]")
	b.Shows("#said", "asked")
	<-hold.Revoked()
	b.Shows(".holder", "Release requested")
	if hold.Err() != nil {
		t.Errorf("asking ended the hold: %v", hold.Err())
	}
}

// TestReleaseRequestIsNotSentToLibraryThatIgnoresIt: the page says so, with and without
// actions, and the server refuses the request and writes nothing.
func TestReleaseRequestIsNotSentToLibraryThatIgnoresIt(t *testing.T) {
	b := StartBrowser(t)
	for name, edit := range map[string]func(*zkui.Options){"actions": withToken, "read-only": func(*zkui.Options) {}} {
		t.Run(name, func(t *testing.T) {
			s := Serve(t, edit)
			z := s.Server.Dial(t)
			const node = "/zklock/db/0f8fad5bd9cb469fa16570867728950e__lock__"
			for _, path := range []string{"/zklock", "/zklock/db"} {
				if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
					t.Fatal(err)
				}
			}
			created, stat, err := z.Create(t.Context(), node, []byte("worker-3"), nil, zk.ModeEphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			b.Open(s.URL + "lock?path=/zklock/db")
			b.Until(`document.querySelector(".holder [data-act=revoke]")?.disabled === false`)
			b.Click(".holder [data-act=revoke]")
			b.Shows("dialog", "kazoo lock ignores release requests, so worker-3 cannot be asked")
			if n := Eval[int](b, `document.querySelectorAll("dialog form, dialog .command").length`); n != 0 {
				t.Error("the dialog offers to ask")
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

// TestReadOnly: without an access token nothing can be done, on the page or past it.
func TestReadOnly(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("safe", 1, "work"))
	hold := p.Hold(p.Mutex("db"))
	b.Open(s.URL + "lock?path=/zklock/db")
	b.Shows(".holder h2", "safe:1")
	for _, deed := range []string{"break", "revoke"} {
		b.Click(".holder [data-act=" + deed + "]")
		b.Shows("dialog .command", fmt.Sprintf("zklock %s /zklock/db --token %d", deed, hold.Token()))
		b.Shows("dialog", "zklock ui --actions")
		if n := Eval[int](b, `document.querySelectorAll("dialog form, dialog input").length`); n != 0 {
			t.Errorf("the dialog of %s is for doing something", deed)
		}
		Eval[any](b, `document.querySelector("dialog").close()`)
		b.Until(`document.querySelector("dialog") === null`)
	}
	for _, deed := range []string{"break", "revoke"} {
		status := Eval[int](b, fmt.Sprintf(`fetch("./%s", {method: "POST",
			headers: {"Content-Type": "application/json", Authorization: "Bearer anything"},
			body: JSON.stringify({path: "/zklock/db", token: "%d"})}).then((r) => r.status)`, deed, hold.Token()))
		if status != 403 {
			t.Errorf("%s without an access token was answered with %d, want 403", deed, status)
		}
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Errorf("the hold ended: %v", err)
	}
}
