package zktest

import (
	"bufio"
	"encoding/binary"
	"math"
	"net"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

const (
	// maxFrame is the longest frame that passes as one. A longer one passes as bytes.
	// If the first frame of a direction seems longer, the direction is no ZooKeeper
	// protocol (a four-letter word, TLS), and all of it passes as bytes.
	maxFrame = 64 << 20
	// windowBytes is how much may be under way in one direction before the
	// sender has to wait.
	windowBytes = 4 << 20
)

// link is one client's connection, with two goroutines a direction: one reads
// and stamps, one waits and writes, so that a delay does not cost throughput.
type link struct {
	relay *Relay
	id    int
	ends  [2]net.Conn   // ends[d] is where direction d goes to
	done  chan struct{} // closed when the link is cut
	once  sync.Once
	flows [2]*flow
	deaf  bool // the imitated server reads nothing more; used only by the reader of requests

	mu        sync.Mutex
	pending   []pending // requests without a reply, oldest first
	greeted   [2]bool   // the first frame has passed
	abandoned bool
}

// flow is one direction of a link.
type flow struct {
	mu    sync.Mutex
	more  sync.Cond // the queue or its size changed, or the link ended
	queue []parcel
	size  int
	ended bool
}

// parcel is what arrives at one moment. No data is the end of the stream.
type parcel struct {
	data  []byte
	to    Direction
	due   time.Time
	after *Fault // happens after this, and ends the link; nil for most
}

func newLink(r *Relay, client, server net.Conn) *link {
	l := &link{relay: r, ends: [2]net.Conn{ToServer: server, ToClient: client}, done: make(chan struct{})}
	for d := range l.flows {
		f := &flow{}
		f.more.L = &f.mu
		l.flows[d] = f
	}
	return l
}

// start begins the link's four goroutines. They end when the link is cut or
// either end closes; Relay.close waits for them.
func (l *link) start() {
	for _, d := range []Direction{ToServer, ToClient} {
		f := l.flows[d]
		go func() {
			defer l.relay.pumps.Done()
			l.pull(d, f)
		}()
		go func() {
			defer l.relay.pumps.Done()
			l.push(d, f)
		}()
	}
}

// pull reads what the one end sends, looks at it, and queues it.
func (l *link) pull(d Direction, f *flow) {
	r := frameReader{br: bufio.NewReader(l.ends[1-d])}
	for {
		data, framed, err := r.next()
		if err != nil {
			break
		}
		if d == ToServer && l.deaf {
			continue
		}
		p, ok := l.consider(d, data, framed)
		if !ok || !l.flows[p.to].add(p) {
			break
		}
	}
	f.add(parcel{due: time.Now().Add(l.relay.lag(Frame{Direction: d}))})
	// A goroutine that waits for the end of a block must check again if the link learns
	// here that its client is gone.
	l.relay.wake()
}

// consider makes a parcel of what was read: a frame, or bytes. It reports false if that
// is to be swallowed; the link is cut then.
func (l *link) consider(d Direction, data []byte, framed bool) (parcel, bool) {
	seen := inspection{frame: Frame{Direction: d, Size: len(data)}}
	if framed {
		seen = l.inspect(d, data[4:])
	} else if d == ToClient {
		data = l.relay.imitated().rename(data)
	}
	if seen.data != nil {
		data = seen.data
	}
	p := parcel{data: data, to: d, due: time.Now().Add(l.relay.lag(seen.frame))}
	switch seen.verdict {
	case cutBefore:
		// First what the fault promises, then the word that it happened.
		l.cut()
		if seen.fault != nil {
			seen.fault.happened()
		}
		return p, false
	case answerUnknown:
		l.deaf, p.to, p.after = true, ToClient, &Fault{relay: l.relay, done: make(chan struct{})}
	case hangBehind:
		p.after = seen.fault
	}
	return p, true
}

// A frameReader divides one direction of a link into frames.
type frameReader struct {
	br    *bufio.Reader
	begun bool  // a frame was read
	plain int64 // how many bytes to pass as bytes before the next frame
}

// next reads a frame with its length, or, where there is none, some bytes.
func (r *frameReader) next() (data []byte, framed bool, err error) {
	if r.plain == 0 {
		head, err := r.br.Peek(4)
		if len(head) == 0 {
			return nil, false, err
		}
		length := int64(math.MaxUint32)
		if err == nil {
			length = int64(binary.BigEndian.Uint32(head))
		}
		if length <= maxFrame {
			r.begun = true
			body, err := wire.ReadFrame(r.br, nil, maxFrame)
			if err != nil {
				return nil, false, err
			}
			data = binary.BigEndian.AppendUint32(nil, uint32(len(body)))
			return append(data, body...), true, nil
		}
		r.plain = 4 + length
		if !r.begun || length > math.MaxInt32 {
			r.plain = math.MaxInt64
		}
	}
	if _, err := r.br.Peek(1); err != nil {
		return nil, false, err
	}
	data = make([]byte, min(int64(r.br.Buffered()), r.plain))
	n, err := r.br.Read(data)
	r.plain -= int64(n)
	return data[:n], false, err
}

// push writes what was queued when its time has come.
func (l *link) push(d Direction, f *flow) {
	defer f.end()
	for {
		p, ok := f.take()
		if !ok || !l.wait(time.Until(p.due)) || !l.relay.pass(d, l) {
			return
		}
		if l.isAbandoned() {
			if len(p.data) > 0 {
				continue
			}
			if d == ToServer {
				l.cut() // the client has given up
			}
			<-l.done
			return
		}
		if len(p.data) == 0 || l.write(l.ends[d], p.data) != nil {
			l.hangUp()
			return
		}
		if p.after != nil {
			l.leave()
			p.after.happened()
			<-l.done
			return
		}
	}
}

// leave tells the client that nothing more comes, in good order so that it has
// what was written, and leaves the server.
func (l *link) leave() {
	l.abandon()
	if c, ok := l.ends[ToClient].(interface{ CloseWrite() error }); ok {
		c.CloseWrite() // an error means that the client has closed already
		return
	}
	l.hangUp()
}

// write writes data at once, or byte by byte.
func (l *link) write(to net.Conn, data []byte) error {
	for len(data) > 0 {
		every, n := l.relay.pace(), len(data)
		if every > 0 {
			n = 1
			if !l.wait(every) {
				return net.ErrClosed
			}
		}
		if _, err := to.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// wait waits for d, and reports whether the link still stands then.
func (l *link) wait(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-l.done:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

// hangUp closes both ends in good order: what was written arrives.
func (l *link) hangUp() { l.finish(func(c net.Conn) { c.Close() }) }

// cut resets both ends.
func (l *link) cut() { l.finish(reset) }

func (l *link) finish(closeEnd func(net.Conn)) {
	l.once.Do(func() {
		close(l.done)
		for _, c := range l.ends {
			closeEnd(c)
		}
		l.relay.remove(l)
	})
}

// abandon closes the server's end and leaves the client's alone.
func (l *link) abandon() {
	l.mu.Lock()
	l.abandoned = true
	l.mu.Unlock()
	l.ends[ToServer].Close()
}

func (l *link) isAbandoned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abandoned
}

// add queues p once there is room, and reports false if the flow has ended.
func (f *flow) add(p parcel) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.size > windowBytes && !f.ended {
		f.more.Wait()
	}
	if f.ended {
		return false
	}
	f.queue = append(f.queue, p)
	f.size += len(p.data)
	f.more.Broadcast()
	return true
}

// take waits for the next parcel. The reader always queues an end, so that
// this ends too.
func (f *flow) take() (parcel, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) == 0 && !f.ended {
		f.more.Wait()
	}
	if f.ended {
		return parcel{}, false
	}
	p := f.queue[0]
	f.queue = f.queue[1:]
	f.size -= len(p.data)
	f.more.Broadcast()
	return p, true
}

func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
	f.more.Broadcast()
}
