package tree

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestTallies(t *testing.T) {
	tr := New(Config{})
	var out Out
	connect := func(id ConnID, req wire.ConnectRequest) { tr.Connect(id, Peer{}, &req, Now{}, &out) }
	connect(1, wire.ConnectRequest{Timeout: 6000})
	connect(2, wire.ConnectRequest{Timeout: 6000})
	connect(3, wire.ConnectRequest{Timeout: 6000, SessionID: 99}) // no such session
	frame := wire.AppendRequest(nil, -4, wire.OpAuth, &wire.AuthPacket{Scheme: "nonsense"})
	tr.Request(1, frame[4:], Now{}, &out)
	tr.Tick(Now{Mono: time.Hour}, &out)
	want := Tallies{Opened: 2, Expired: 2, AuthFailures: 1}
	if got := tr.Tallies(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
