package ui

import (
	"testing"

	"github.com/zklock/zklock/zkui"
)

// TestPageRequiresReadToken checks that the page shows no lock before the user enters the
// token, rejects a wrong token, and keeps the token for later addresses.
func TestPageRequiresReadToken(t *testing.T) {
	const reading = "a-token-to-read-with"
	b, s := StartBrowser(t), Serve(t, func(o *zkui.Options) { o.ReadToken = reading })
	peer := NewPeer(t, s.Server, named("host", 1, "work"))
	peer.Hold(peer.Mutex("seen"))
	b.Open(s.URL)
	b.Shows("#login", "requires its read token")
	if Eval[bool](b, `document.body.innerText.includes("seen")`) {
		t.Error("the page shows a lock without a token")
	}
	b.Type("#login [name=token]", "not-the-token-at-all")
	b.Click("#login [type=submit]")
	b.Shows("#login .wrong", "does not know the previous token")
	b.Type("#login [name=token]", reading)
	b.Click("#login [type=submit]")
	b.Shows("#view", "seen")
	b.Until(`document.getElementById("live").dataset.state === "live"`)
	peer.Hold(peer.Mutex("later")) // from the event stream
	b.Shows("#view", "later")
	b.Open(s.URL + "lock?path=/zklock/seen")
	b.Shows("#view", "host:1")
	if Eval[bool](b, `document.cookie !== "" || location.href.includes("token")`) {
		t.Error("the token is in a cookie or an address")
	}
}
