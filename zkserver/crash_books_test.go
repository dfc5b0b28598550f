package zkserver

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// page is what the books say of one path: what was acknowledged last, and at most
// one request without an answer.
type page struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64

	pending change
	wish    string // the data that a pending change writes
	twin    string // the path that is made by the same multi, "" for none
}

type change int

const (
	none change = iota
	creates
	sets
	deletes
)

// found is what a server shows of a path.
type found struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64
}

// explains reports whether what is found is what was acknowledged, or what the
// request without an answer made of it.
func (p *page) explains(f found) bool {
	was := found{p.exists, p.czxid, p.mzxid, p.version, p.data, p.owner}
	if f == was || !f.exists && !p.exists {
		return true
	}
	switch p.pending {
	case creates:
		return f.exists && f.data == p.wish && f.owner == p.owner && f.version == 0 && f.mzxid == f.czxid
	case sets:
		was.data, was.version, was.mzxid = p.wish, was.version+1, f.mzxid
		return f == was && f.mzxid > p.mzxid
	case deletes:
		return !f.exists
	}
	return false
}

// books know what a server acknowledged, to all clients.
type books struct {
	mu       sync.Mutex
	pages    map[string]*page
	sessions map[int64]*ticket
	top      int64          // the highest transaction id acknowledged
	topSeq   int            // the highest sequence number acknowledged
	numbers  map[int]string // who got which number
	acked    int
	unknown  int // requests without an answer
}

// ticket is a session as its client knows it.
type ticket struct {
	id       int64
	password []byte
	timeout  time.Duration
	heard    time.Time // when the last request was sent that was answered
	sent     time.Time // when the last request was sent
	left     bool      // its client is gone for good
	closed   change    // deletes once its end was asked for, none before; see over
	over     bool      // its end is certain
}

func newBooks() *books {
	return &books{pages: make(map[string]*page), sessions: make(map[int64]*ticket), numbers: make(map[int]string), topSeq: -1}
}

// begin notes a request before it is sent, and returns what its outcome must be
// above: a transaction id and a sequence number.
func (b *books) begin(path string, c change, data string, owner int64, twin string) (top int64, seq int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path == "" { // not known before
		return b.top, b.topSeq
	}
	b.ask(path, c, data, owner, twin)
	if twin != "" {
		b.ask(twin, c, data, owner, path)
	}
	return b.top, b.topSeq
}

func (b *books) ask(path string, c change, data string, owner int64, twin string) {
	p := b.pages[path]
	if p == nil {
		p = &page{owner: owner}
		b.pages[path] = p
	}
	p.pending, p.wish, p.twin = c, data, twin
}

// settle takes in what a path is found to be while nothing is under way for it.
func (b *books) settle(path string, f found) error {
	p := b.pages[path]
	if p == nil {
		return fmt.Errorf("%s: nobody made it", path)
	}
	t := b.sessions[p.owner]
	if !p.explains(f) && !b.ended(p, f) || f.exists && p.owner != 0 && t.over {
		return fmt.Errorf("%s: acknowledged was %+v, found is %+v", path, *p, f)
	}
	if p.pending != none {
		b.unknown++
	}
	if !f.exists {
		delete(b.pages, path)
		return nil
	}
	b.top = max(b.top, f.mzxid)
	*p = page{exists: true, czxid: f.czxid, mzxid: f.mzxid, version: f.version, data: f.data, owner: f.owner}
	return nil
}

// ended reports whether a path is gone with its session, which may be over.
func (b *books) ended(p *page, f found) bool {
	t := b.sessions[p.owner]
	return !f.exists && p.owner != 0 && (t == nil || t.over || t.closed == deletes)
}

// done takes in an answer, which must come with a higher transaction id than
// all that were acknowledged before its request was sent.
func (b *books) done(path string, top int64, f found) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked++
	if f.exists && f.mzxid <= top {
		return fmt.Errorf("%s: transaction %#x after %#x was acknowledged", path, f.mzxid, top)
	}
	p := b.pages[path]
	if !p.explains(f) {
		return fmt.Errorf("%s: was %+v, a change gave %+v", path, *p, f)
	}
	unknown := b.unknown
	err := b.settle(path, f)
	b.unknown = unknown // this one was answered
	return err
}

// numbered takes in the name of a sequential node.
func (b *books) numbered(path string, above int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.number(path)
	if err == nil && n <= above {
		err = fmt.Errorf("%s: a number not above %d, which was acknowledged before", path, above)
	}
	b.acked++
	return err
}

// number notes the number of a sequential node.
func (b *books) number(path string) (int, error) {
	var n int
	if _, err := fmt.Sscanf(path[strings.LastIndexByte(path, '-')+1:], "%d", &n); err != nil {
		return 0, fmt.Errorf("%s: no number: %w", path, err)
	}
	if other, ok := b.numbers[n]; ok {
		return 0, fmt.Errorf("%s: the number was given to %s before", path, other)
	}
	b.numbers[n] = path
	b.topSeq = max(b.topSeq, n)
	return n, nil
}
