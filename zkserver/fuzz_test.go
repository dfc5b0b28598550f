package zkserver

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// FuzzStream sends arbitrary bytes, with and without a session. The server
// must come to an end with them by itself, and serve another client as before.
func FuzzStream(f *testing.F) {
	for _, frame := range hostileFrames() {
		f.Add(true, frame)
		f.Add(false, frame)
	}
	f.Add(false, []byte("srvr"))
	f.Add(false, []byte("stat\n"))
	hello := wire.ConnectRequest{Timeout: 1000, HasReadOnly: true}
	f.Add(false, wire.AppendRequest(wire.AppendRecord(nil, &hello), 1, wire.OpCloseSession, nil))
	create := &wire.CreateRequest{Path: "/a", ACL: openACL()}
	b := wire.AppendRequest(nil, 1, wire.OpCreate, create)
	b = wire.AppendRequest(b, 2, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreate, Req: create}}})
	b = wire.AppendRequest(b, 3, wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{"/a"}})
	f.Add(true, wire.AppendRequest(b, 4, wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/", Watch: true}))
	f.Fuzz(func(t *testing.T, greeted bool, stream []byte) {
		synctest.Test(t, func(t *testing.T) { fuzzStream(t, greeted, stream) })
	})
}

func fuzzStream(t *testing.T, greeted bool, stream []byte) {
	opts := quiet(t)
	opts.Logger = discard()
	opts.FourLetterWords = []string{"*"}
	s := start(t, opts)
	good := login(t, s, time.Hour)
	var bad *raw
	if greeted {
		bad = login(t, s, time.Second)
	} else {
		bad = open(t, s)
	}
	go func() {
		for len(stream) > 0 {
			n := min(len(stream), 1+len(stream)/3)
			if _, err := bad.nc.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
	}()
	// Sessions end after an hour at most, and so does everything else.
	bad.nc.SetReadDeadline(time.Now().Add(2 * time.Hour))
	if _, err := io.Copy(io.Discard, bad.br); err != nil && !closedError(err) {
		t.Errorf("the connection stayed: %v", err)
	}
	if again := login(t, s, time.Minute); !again.exists("/zookeeper") {
		t.Error("the tree is broken")
	}
	good.nc.Close()
}
