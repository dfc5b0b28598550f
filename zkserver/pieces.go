package zkserver

import "bytes"

// pieces is output in the order in which it is sent. Short frames share a buffer. A long one
// stays as it is: the loop must not copy tens of megabytes, nor allocate them.
type pieces struct {
	first []byte
	rest  *morePieces // nil if there are none
}

// morePieces are the pieces after the first one.
type morePieces struct {
	list  [][]byte
	bytes int
}

// len returns the number of bytes.
func (p *pieces) len() int {
	if p.rest == nil {
		return len(p.first)
	}
	return len(p.first) + p.rest.bytes
}

// addAll appends the pieces of q. It keeps the long ones.
func (p *pieces) addAll(q pieces) {
	p.add(q.first)
	if q.rest != nil {
		for _, b := range q.rest.list {
			p.add(b)
		}
	}
}

// write passes the pieces to f, which returns how many bytes it has written, and removes these.
// It ends at the first piece that f does not write completely.
func (p *pieces) write(f func(b []byte) int) {
	for p.len() > 0 {
		b := p.take(nil)
		n := f(b)
		if p.putBack(b[n:]); n < len(b) {
			return
		}
	}
}

// add appends b. It keeps b if b is long.
func (p *pieces) add(b []byte) {
	long := len(b) > keepBuffer
	if p.rest == nil {
		switch {
		case !long && len(p.first) <= keepBuffer:
			p.first = append(p.first, b...)
			return
		case len(p.first) == 0:
			p.first = b
			return
		}
		p.rest = new(morePieces)
	}
	p.rest.bytes += len(b)
	switch last := len(p.rest.list) - 1; {
	case long:
		p.rest.list = append(p.rest.list, b)
	case last >= 0 && len(p.rest.list[last]) <= keepBuffer:
		p.rest.list[last] = append(p.rest.list[last], b...)
	default:
		p.rest.list = append(p.rest.list, bytes.Clone(b))
	}
}

// take removes the first piece and returns it, or nothing if there is none. The buffer spare
// replaces it.
func (p *pieces) take(spare []byte) (b []byte) {
	b, p.first = p.first, spare[:0]
	if r := p.rest; len(b) == 0 && r != nil {
		b, r.list[0] = r.list[0], nil
		r.list = r.list[1:]
		if r.bytes -= len(b); len(r.list) == 0 {
			p.rest = nil
		}
	}
	return b
}

// putBack makes b, the rest of what take returned, the first piece again.
func (p *pieces) putBack(b []byte) {
	if len(b) > 0 {
		p.first = b[:len(b):len(b)] // an append must not write to a shared frame
	}
}
