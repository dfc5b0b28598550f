package tree

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// FuzzRequests passes frames to a Tree. A byte that selects the connection and other events, and
// two bytes of length, precede each frame. The Tree must not panic. It must answer every frame or
// close the connection, keep its invariants, and replay to the same state.
func FuzzRequests(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomStream(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		w := newHarness(t, Config{ExtendedTypes: true, SASLUsers: saslUsers(), SuperUsers: []string{"bob"}, X509SuperUser: "CN=root"})
		w.dial()
		w.dial()
		for len(stream) >= 3 {
			n := min(int(binary.BigEndian.Uint16(stream[1:])), len(stream)-3)
			selector, frame := stream[0], bytes.Clone(stream[3:3+n])
			stream = stream[3+n:]
			if selector&0x40 != 0 {
				w.advance(time.Duration(selector&0x3c) * time.Second)
				w.tick()
			}
			if selector&0x80 != 0 {
				fuzzConnect(w, frame)
				continue
			}
			p := w.peers[ConnID(1+int64(selector)%int64(w.lastID))]
			answers := len(p.replies)
			p.sendFrame(frame)
			if !p.closed && len(p.replies) != answers+1 {
				t.Fatalf("%d answers to one frame", len(p.replies)-answers)
			}
		}
		checkInvariants(t, w.tree)
		w.check()
	})
}

// fuzzConnect sends arbitrary bytes as a handshake.
func fuzzConnect(w *harness, frame []byte) {
	var req wire.ConnectRequest
	r := jute.NewReader(frame)
	if req.Decode(r); r.Finish() != nil {
		return
	}
	w.lastID++
	w.peers[w.lastID] = &peer{w: w, id: w.lastID}
	w.tree.Connect(w.lastID, Peer{}, &req, w.now, &w.out)
	w.flush()
}

// randomStream returns a stream of valid requests as a seed for the fuzzer.
func randomStream(seed uint64) []byte {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1))}
	var b []byte
	for i := range int32(60) {
		op, rec := r.request()
		frame := wire.AppendRequest(nil, i, op, rec)[4:]
		b = append(b, byte(r.IntN(128)))
		b = binary.BigEndian.AppendUint16(b, uint16(len(frame)))
		b = append(b, frame...)
	}
	return b
}

// FuzzRecover passes arbitrary bytes to an empty Tree as a snapshot, and to a Tree with nodes as a
// record.
func FuzzRecover(f *testing.F) {
	base := variedTree(f)
	snap := base.tree.AppendSnapshot(nil)
	f.Add(snap)
	f.Add(New(Config{}).AppendSnapshot(nil))
	next := base.tree.Zxid() + 1
	for _, rec := range base.logged {
		b := bytes.Clone(rec)
		binary.BigEndian.PutUint64(b[1:], uint64(next))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := New(Config{})
		if restoreBytes(tr, b) == nil {
			exercise(t, tr)
		}
		tr = New(Config{})
		if err := restoreBytes(tr, snap); err != nil {
			t.Fatal(err)
		}
		if tr.Replay(b) == nil {
			exercise(t, tr)
		}
	})
}
