package ui

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// attacks are texts that any client may write into a znode's name or data.
var attacks = []string{
	`<img src=x onerror="window.attacked=1">`,
	`<script>window.attacked=1<` + `/script>`,
	`"><svg onload=window.attacked=1>`,
	`javascript:window.attacked=1`,
	`{{constructor.constructor("window.attacked=1")()}}`,
	`&lt;b&gt;not bold&lt;/b&gt;`,
}

func TestOwnerIsShownAsText(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	for i, attack := range attacks {
		p := NewPeer(t, s.Server, zklock.Owner{Host: attack, PID: i + 1, User: attack, Command: attack, Version: attack})
		p.Hold(p.Mutex("owner-" + strconv.Itoa(i)))
		checkAttackFails(t, b, s, "/zklock/owner-"+strconv.Itoa(i), attack)
	}
}

func TestLockNameIsShownAsText(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	for _, name := range []string{`<img src=x onerror=window.attacked=1>`, `"><svg onload=window.attacked=1>`, `javascript:window.attacked=1`, `&amp;path=?#%2f`} {
		p := NewPeer(t, s.Server, named("host", 1, "run"))
		p.Hold(p.Mutex(name))
		checkAttackFails(t, b, s, "/zklock/"+name, name)
	}
}

// TestInvisibleCharactersAreEscaped checks characters that reverse or hide text: in the list,
// on the lock's page, in dialogs, and in the window's title.
func TestInvisibleCharactersAreEscaped(t *testing.T) {
	const name, shown = "pay\u202eegaf\u200b\ufeff\u2003\u3000  x", `pay\u202eegaf\u200b\ufeff\u2003\u3000 \x20x`
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, zklock.Owner{Host: "web\u2066", PID: 1, User: "ad\u200bmin", Command: "run"})
	p.Hold(p.Mutex(name))
	for _, at := range []string{"", "sessions", "lock?path=" + url.QueryEscape("/zklock/"+name)} {
		b.Open(s.URL + at)
		b.Shows("body", shown)
		if Eval[bool](b, `/[\u202e\u200b\ufeff\u2066\u2003\u3000]/.test(document.body.innerText + document.title + [...document.querySelectorAll("[title], [aria-label]")].map((n) => n.title + n.getAttribute("aria-label")).join())`) {
			t.Errorf("%q shows invisible characters", at)
		}
	}
	b.Shows(".holder h2", `web\u2066:1`)
	b.Click(".holder [data-details]")
	b.Until(`document.querySelector("dialog") !== null`)
	if text := b.Text("dialog"); !strings.Contains(text, `ad\u200bmin`) || !strings.Contains(text, shown) {
		t.Errorf("the dialog shows %q", text)
	}
}

// TestLevelsOfRightToLeftNamesKeepTheirOrder checks that right-to-left letters do not change
// the visible order of a path's levels. Otherwise two locks could look alike.
func TestLevelsOfRightToLeftNamesKeepTheirOrder(t *testing.T) {
	const name, first, second = "\u05d0\u05d1/123", "\u05d0\u05d1", "123"
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("host", 1, "run"))
	b.Open(s.URL + "log")
	b.Shows(".none", "No events yet") // the log shows later events
	p.Hold(p.Mutex(name))
	page := "lock?path=" + url.QueryEscape("/zklock/"+name)
	for at, selector := range map[string]string{"": ".locks .row a.name", page: "h1", "log": ".log .row a.name", "sessions": ".sessions .row .badge"} {
		b.Open(s.URL + at)
		b.Shows(selector, second)
		left := func(text string) float64 {
			return Eval[float64](b, `(() => {
				const texts = document.createTreeWalker(document.querySelector(`+strconv.Quote(selector)+`), NodeFilter.SHOW_TEXT), range = document.createRange();
				while (texts.nextNode()) {
					const at = texts.currentNode.data.indexOf(`+strconv.Quote(text)+`);
					if (at < 0) continue;
					range.setStart(texts.currentNode, at);
					range.setEnd(texts.currentNode, at + `+strconv.Itoa(len([]rune(text)))+`);
					return range.getBoundingClientRect().left;
				}
			})()`)
		}
		if l, r := left(first), left(second); l >= r {
			t.Errorf("%q shows the first level at %v and the second at %v", at, l, r)
		}
		if text := b.Text(selector); !strings.HasSuffix(text, name) {
			t.Errorf("%q has the text %q", at, text)
		}
	}
}

// TestZnodeDataIsShownAsText checks that the page escapes control and invisible characters too.
func TestZnodeDataIsShownAsText(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	z := s.Server.Dial(t)
	create(t, z, "/zklock", nil, zk.ModePersistent)
	for i, data := range attacks {
		lock := "/zklock/data-" + strconv.Itoa(i)
		create(t, z, lock, nil, zk.ModePersistent)
		create(t, z, lock+"/_c_00000000-0000-0000-0000-000000000000-lock-", []byte(data+"\u202e\x1b[31m\x00"), zk.ModeEphemeralSequential)
		checkAttackFails(t, b, s, lock, data)
		b.Open(s.URL + "lock?path=" + lock)
		b.Until(`document.querySelector(".holder pre") !== null`)
		if text := b.Text(".holder pre"); text != data+`\u202e\x1b[31m\x00` {
			t.Errorf("the data are shown as %q", text)
		}
	}
}

// checkAttackFails opens all pages that show a lock's name and data, and checks that they are
// text.
func checkAttackFails(t *testing.T, b *Browser, s *Site, lock, shown string) {
	t.Helper()
	b.Open(s.URL)
	row := "[...document.querySelectorAll('.locks .row')].find((r) => new URLSearchParams(r.querySelector('a.name').getAttribute('href').split('?')[1]).get('path') === " + strconv.QuoteToASCII(lock) + ")"
	b.Until(row + "?.innerText.length > 0")
	checkNoInjection(t, b, "the list")
	Eval[any](b, row+".querySelector('a.name').click()")
	b.Until("document.querySelector('h1').innerText === " + strconv.QuoteToASCII(lock))
	b.Until("document.querySelector('main').innerText.includes(" + strconv.QuoteToASCII(shown[:min(len(shown), 24)]) + ")")
	b.Click(".holder [data-details]")
	b.Until("document.querySelector('dialog[open]') !== null")
	checkNoInjection(t, b, "the lock's page")
	b.Click("dialog a[data-go]")
	b.Until("document.querySelector('h1').innerText.startsWith('Session')")
	b.Until("document.querySelector('.stop') !== null")
	checkNoInjection(t, b, "the session's page")
	b.Open(s.URL + "sessions")
	b.Until("document.querySelector('.sessions .row') !== null")
	checkNoInjection(t, b, "the sessions")
}

// checkNoInjection fails the test if the page contains elements of an attack, or ran its script.
func checkNoInjection(t *testing.T, b *Browser, where string) {
	t.Helper()
	if Eval[bool](b, "window.attacked !== undefined") {
		t.Errorf("%s ran what another client wrote", where)
	}
	n := Eval[int](b, `document.querySelectorAll("main img, main script, main b.not, [onerror], [onload], a[href^='javascript:']").length`)
	if n != 0 {
		t.Errorf("%s has %d elements that another client wrote", where, n)
	}
}
