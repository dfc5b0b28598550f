package ui

import (
	"os"
	"testing"

	"github.com/zklock/zklock/zkui"
)

// TestLogin: where reading needs a token, the page asks for it, shows nothing before,
// says when it is wrong, and knows it until the tab is closed.
func TestLogin(t *testing.T) {
	const reading = "a-token-to-read-with"
	b, s := StartBrowser(t), Serve(t, func(o *zkui.Options) { o.ReadToken = reading })
	peer := NewPeer(t, s.Server, named("host", 1, "work"))
	peer.Hold(peer.Mutex("seen"))
	b.Open(s.URL)
	b.Shows("#login", "requires its read token")
	if dir := os.Getenv("ZKLOCK_PICTURES"); dir != "" {
		b.Picture(dir + "/login.png")
	}
	if Eval[bool](b, `document.body.innerText.includes("seen")`) {
		t.Error("a lock is shown before the token is given")
	}
	b.Type("#login [name=token]", "not-the-token-at-all")
	b.Click("#login [type=submit]")
	b.Shows("#login .wrong", "does not know the previous token")
	b.Type("#login [name=token]", reading)
	b.Click("#login [type=submit]")
	b.Shows("#view", "seen")
	b.Until(`document.getElementById("live").dataset.state === "live"`)
	peer.Hold(peer.Mutex("later")) // the stream tells of it
	b.Shows("#view", "later")
	b.Open(s.URL + "lock?path=/zklock/seen")
	b.Shows("#view", "host:1")
	if Eval[bool](b, `document.cookie !== "" || location.href.includes("token")`) {
		t.Error("the token is in a cookie or an address")
	}
}
