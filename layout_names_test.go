package zklock

import (
	"math/rand/v2"
	"testing"

	"github.com/zklock/zklock/internal/queue"
)

// TestLayoutsTellEntriesApart: in any layout that is allowed, with any names that
// are, each lock's entries are read as what they are, and two locks in one parent
// never take each other's for their own, nor for damaged ones.
func TestLayoutsTellEntriesApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = "-_aX0"[r.IntN(5)]
		}
		return string(b)
	}
	layouts, pairs := 0, 0
	for range 60_000 {
		l := Layout{Prefix: word(3), Exclusive: word(3), Shared: word(3), InParent: r.IntN(2) == 0}
		if l.check() != nil || l.Exclusive == "" {
			continue
		}
		layouts++
		c := &Client{opts: Options{Layout: l}}
		var parts []part
		for range 3 {
			if p, err := c.queuePart("/dir/"+word(5), queue.Exclusive, false); err == nil {
				parts = append(parts, p)
			}
		}
		for i, p := range parts {
			for kind, marker := range map[queue.Kind]string{queue.Exclusive: l.Exclusive, queue.Shared: l.Shared} {
				if marker == "" {
					continue
				}
				name := p.member.Names.Ask([16]byte{}, 1, kind, false)[0] + "0000000007"
				if e, class := p.member.Names.Parse(name); class != queue.Contender || e.Kind != kind || e.Seq != 7 {
					t.Fatalf("%+v: %s of %s is read as %+v, class %d", l, name, p.path, e, class)
				}
				for _, other := range parts[:i] {
					if other.path == p.path || !l.InParent {
						continue
					}
					pairs++
					if e, class := other.member.Names.Parse(name); class != queue.Foreign {
						t.Fatalf("%+v: %s of %s is read as %+v, class %d, of %s", l, name, p.path, e, class, other.path)
					}
				}
			}
		}
	}
	if layouts < 1000 || pairs < 1000 {
		t.Errorf("%d layouts, %d pairs: this shows nothing", layouts, pairs)
	}
	t.Logf("%d layouts, %d pairs", layouts, pairs)
}
