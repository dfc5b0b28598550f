package load

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestPairsCheck(t *testing.T) {
	for name, c := range map[string]struct {
		answers []wire.ReplyHeader
		want    error
	}{
		"good":           {[]wire.ReplyHeader{{Zxid: 1}, {Zxid: 2}, {Zxid: 5}}, nil},
		"lost create":    {[]wire.ReplyHeader{{Zxid: 1}, {Zxid: 2, Err: wire.ErrNoNode}}, wire.ErrNoNode},
		"failed create":  {[]wire.ReplyHeader{{Zxid: 1, Err: wire.ErrNodeExists}}, wire.ErrNodeExists},
		"zxid again":     {[]wire.ReplyHeader{{Zxid: 2}, {Zxid: 2}}, ErrAnswer},
		"zxid goes back": {[]wire.ReplyHeader{{Zxid: 2}, {Zxid: 1}}, ErrAnswer},
	} {
		p := NewPairs("/p", 1)
		var err error
		for _, h := range c.answers {
			if err = p.Check(0, h, nil); err != nil {
				break
			}
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestPairsEndWithDelete(t *testing.T) {
	p := NewPairs("/p", 1)
	if _, more := p.Next(0, 1, true, nil); more {
		t.Error("Next begins a pair at the end")
	}
	if _, more := p.Next(0, 1, false, nil); !more {
		t.Error("Next begins no pair")
	}
	if err := p.Check(0, wire.ReplyHeader{Zxid: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if _, more := p.Next(0, 2, true, nil); !more {
		t.Error("Next leaves the node at the end")
	}
}

func TestFanoutCheck(t *testing.T) {
	event := wire.ReplyHeader{Xid: wire.XidEvent}
	f := NewFanout("/w", 3)
	f.Fire()
	if err := f.Check(1, event, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(1, event, nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("second event: %v", err)
	}
	if err := f.Check(0, event, nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("event for the writer: %v", err)
	}
	if err := f.Check(2, wire.ReplyHeader{Xid: 4, Err: wire.ErrNoNode}, nil); !errors.Is(err, wire.ErrNoNode) {
		t.Errorf("a failed request: %v", err)
	}
	f.Arm()
	if err := f.Check(2, event, nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("event without a change: %v", err)
	}
}

func TestPercentile(t *testing.T) {
	var r Result
	if r.Percentile(0.5) != 0 {
		t.Error("a latency of nothing")
	}
	for i := range 100 {
		r.Latencies = append(r.Latencies, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 0, 0.5: 50, 0.99: 99, 1: 99} {
		if got := r.Percentile(p); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
}
