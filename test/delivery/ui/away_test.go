package ui

import (
	"testing"
)

// TestServersAway: the page says that what it shows is old, and then that it is not.
func TestServersAway(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	threeLocks(t, s)
	b.Open(s.URL)
	b.Shows("#live", "live")
	s.Server.Stop()
	b.Shows("#live", "servers away")
	b.Shows(".notice", "No ZooKeeper server answers")
	if text := b.Text(".locks"); text == "" {
		t.Error("the list is empty while the servers are away")
	}
	s.Server.Restart(t)
	b.Shows("#live", "live")
	b.Until(`document.querySelector(".notice") === null`)
}

// TestPageServerAway: a page that lost its own server says so, and goes on by
// itself when it is there again.
func TestPageServerAway(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	threeLocks(t, s)
	b.Open(s.URL)
	b.Shows("#live", "live")
	s.Stop()
	b.Shows("#live", "connection lost")
	b.Shows(".notice", "lost its server")
	p := NewPeer(t, s.Server, named("meanwhile", 1, "run"))
	p.Hold(p.Mutex("meanwhile"))
	s.Restart()
	b.Shows("#live", "live")
	b.Until(names + `.includes("/zklock/meanwhile")`)
}
