package zkserver

// Buffers for long answers. The loop does not allocate them itself: while the garbage collector
// runs, an allocation has to help it in proportion to its size, for up to 0.2 s on a server with
// millions of nodes. A goroutine allocates one at a time, and the next one when that is used, so
// that many connections that want one do not fill the memory.

// longAnswer is the size of an answer in bytes from which it needs such a buffer.
const longAnswer = 256 << 10

// answerBuffers is the loop's state of these buffers.
type answerBuffers struct {
	waiting    []bufferRequest
	allocating bool
	holder     *conn // got the last buffer; nil once it has used or lost it
}

// bufferRequest is a connection whose next request waits for a buffer.
type bufferRequest struct {
	c    *conn
	size int
}

// awaitBuffer makes the next request of c wait for a buffer.
func (s *Server) awaitBuffer(c *conn, size int) {
	c.awaitsBuffer = true
	s.loop.buffers.waiting = append(s.loop.buffers.waiting, bufferRequest{c, size})
}

// provideBuffer gives a buffer that is ready to the first connection that waits for one, or
// starts to allocate it. A connection that cannot use its buffer, for example because its client
// does not read, loses it, so that the others get theirs.
func (s *Server) provideBuffer() {
	b := &s.loop.buffers
	if c := b.holder; c != nil && c.exchange != nil && c.buffer != nil {
		if c.runnable {
			return
		}
		c.buffer = nil
	}
	if b.holder = nil; len(b.waiting) == 0 {
		return
	}
	if !b.allocating {
		b.allocating = true
		s.firstUncharged(b.waiting)
		size := b.waiting[0].size
		s.handlers.Add(1)
		go func() { // ends when the buffer is allocated; Close waits for it
			defer s.handlers.Done()
			s.allocated <- allocate(size + size/16) // the answer may have grown meanwhile
			s.wakeLoop()
		}()
	}
	select {
	case buffer := <-s.allocated:
		c := b.waiting[0].c
		b.waiting[0], b.waiting, b.allocating = bufferRequest{}, b.waiting[1:], false
		if c.exchange != nil {
			c.awaitsBuffer, c.buffer, b.holder = false, buffer, c
			s.requeueFirst(c) // the others wait for its turn
		}
	default:
	}
}

// firstUncharged moves the first request of a connection that is not charged to the front, or
// else the first one whose address alone is charged.
func (s *Server) firstUncharged(waiting []bufferRequest) {
	first, group := 0, s.chargeOf(waiting[0].c)
	for i := 1; i < len(waiting) && group > notCharged; i++ {
		if g := s.chargeOf(waiting[i].c); g < group {
			first, group = i, g
		}
	}
	r := waiting[first]
	copy(waiting[1:], waiting[:first])
	waiting[0] = r
}

// allocate returns an empty buffer of a capacity, whose memory is there: the kernel would
// otherwise provide it page by page, when the loop uses it.
func allocate(size int) []byte {
	const page = 4096
	b := make([]byte, size)
	for i := 0; i < size; i += page {
		b[i] = 0
	}
	return b[:0]
}
