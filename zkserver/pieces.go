package zkserver

import "bytes"

// pieces is output in the order in which it is sent. Short frames share a buffer. A long one
// stays as it is: the loop must not copy tens of megabytes, nor allocate them.
type pieces struct {
	first   []byte
	written int         // the bytes of first that were written; first keeps their memory
	rest    *morePieces // nil if there are none
}

// morePieces are the pieces after the first one. None is empty.
type morePieces struct {
	list  [][]byte
	bytes int
}

// len returns the number of bytes that are not written.
func (p *pieces) len() int {
	n := len(p.first) - p.written
	if p.rest != nil {
		n += p.rest.bytes
	}
	return n
}

// memory returns the number of bytes that the pieces occupy.
func (p *pieces) memory() (n int) {
	if len(p.first) > 0 {
		n = cap(p.first)
	}
	if p.rest != nil {
		for _, b := range p.rest.list {
			n += cap(b)
		}
	}
	return n
}

// addAll appends the pieces of q. It keeps the long ones.
func (p *pieces) addAll(q pieces) {
	if left := q.first[q.written:]; p.len() == 0 && len(left) > keepBuffer {
		p.first, p.written = q.first, q.written
	} else {
		p.add(left)
	}
	if q.rest != nil {
		for _, b := range q.rest.list {
			p.add(b)
		}
	}
}

// add appends b. It keeps b if b is long.
func (p *pieces) add(b []byte) {
	long := len(b) > keepBuffer
	switch {
	case len(b) == 0:
		return
	case p.rest != nil:
	case !long && len(p.first) <= keepBuffer:
		p.first = append(p.first, b...)
		return
	case len(p.first) == 0:
		p.first = b
		return
	default:
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

// next returns the bytes to write next, or nothing if there are none.
func (p *pieces) next() []byte {
	if r := p.rest; len(p.first) == 0 && r != nil {
		p.first, r.list[0] = r.list[0], nil
		r.list = r.list[1:]
		if r.bytes -= len(p.first); len(r.list) == 0 {
			p.rest = nil
		}
	}
	return p.first[p.written:]
}

// wrote removes the first n bytes of what next returned. A short rest of a long piece does not
// keep the memory of that piece.
func (p *pieces) wrote(n int) {
	p.written += n
	switch left := p.first[p.written:]; {
	case len(left) == 0:
		p.first, p.written = nil, 0
	case len(left) <= keepBuffer && p.written > keepBuffer:
		p.first, p.written = bytes.Clone(left), 0
	}
}

// write passes the pieces to f, which returns how many bytes it has written, and removes these.
// It ends at the first piece that f does not write completely.
func (p *pieces) write(f func(b []byte) int) {
	for p.len() > 0 {
		b := p.next()
		n := f(b)
		if p.wrote(n); n < len(b) {
			return
		}
	}
}

// take removes what next returns, and returns it. The buffer spare replaces it.
func (p *pieces) take(spare []byte) []byte {
	b := p.next()
	p.first, p.written = spare[:0], 0
	return b
}
