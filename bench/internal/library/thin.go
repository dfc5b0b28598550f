package library

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// The transaction ids of a waiter's requests.
const (
	xidCreate = iota + 1
	xidList
	xidWatch
	xidRelease
)

// entryPrefix is as long as the names of zklock's entries, and entryData as long as their
// data.
const entryPrefix = "_c_00000000-0000-4000-8000-000000000000-lock-"

var entryData = make([]byte, 120)

// A thinLoop is many sessions in one goroutine that wait for one lock. They send what a
// client must send for a marked release, and check nothing, so no client with such a
// handover can be faster.
type thinLoop struct {
	parent   string
	epoll    int
	sessions map[int32]*thinSession // by file descriptor
	released time.Time              // when the last hold was released
	cycles   int64
	handOver []time.Duration
}

// A thinSession is one session with one waiter.
type thinSession struct {
	loop     *thinLoop
	file     *os.File
	unread   []byte
	own      string // the name of its entry
	czxid    int64
	blocker  string // the name of the predecessor's entry
	waited   bool
	watching bool // the watches are set
	marked   bool // the blocker's mark was created after the watches were set
	deleted  bool // the blocker was deleted before the watches were set
}

// thin does a work in which every worker has its own session and all want the same lock.
func thin(ctx context.Context, server string, w lockwork.Work) (r lockwork.Result, err error) {
	l := &thinLoop{parent: w.Path, sessions: map[int32]*thinSession{}}
	if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return r, fmt.Errorf("library: epoll: %w", err)
	}
	defer syscall.Close(l.epoll)
	defer func() {
		for _, s := range l.sessions {
			s.file.Close() // the server deletes the entry when the session ends
		}
	}()
	for range w.Sessions {
		if err := l.dial(ctx, server); err != nil {
			return r, err
		}
	}
	for _, s := range l.sessions {
		if err := s.enqueue(); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	for ctx.Err() == nil && time.Since(begin) < w.Time {
		if err := l.await(); err != nil {
			return r, err
		}
	}
	r.Cycles, r.Time = l.cycles, time.Since(begin)
	if slices.Sort(l.handOver); len(l.handOver) > 0 {
		r.HandOver50, r.HandOver99 = l.handOver[len(l.handOver)/2], l.handOver[len(l.handOver)*99/100]
	}
	return r, ctx.Err()
}

// dial opens a session and creates the lock's znode.
func (l *thinLoop) dial(ctx context.Context, server string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return fmt.Errorf("library: %w", err)
	}
	defer conn.Close() // the file is a copy
	connect := wire.ConnectRequest{Timeout: 40_000, Password: make([]byte, 16), HasReadOnly: true}
	frame, start := wire.BeginFrame(nil)
	frame = wire.EndFrame(connect.Append(frame), start)
	frame = wire.AppendRequest(frame, 1, wire.OpCreate, &wire.CreateRequest{Path: l.parent, ACL: openACL(), Flags: wire.ModePersistent})
	if _, err := conn.Write(frame); err != nil {
		return fmt.Errorf("library: %w", err)
	}
	replies := bufio.NewReader(conn)
	for range 2 {
		if _, err := wire.ReadFrame(replies, nil, wire.DefaultMaxFrame); err != nil {
			return fmt.Errorf("library: %w", err)
		}
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return fmt.Errorf("library: %w", err)
	}
	fd := int32(file.Fd())
	l.sessions[fd] = &thinSession{loop: l, file: file}
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: fd})
}

// await waits up to a tenth of a second for replies and events, and handles them.
func (l *thinLoop) await() error {
	var events [64]syscall.EpollEvent
	n, err := syscall.EpollWait(l.epoll, events[:], 100)
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return fmt.Errorf("library: epoll: %w", err)
	}
	for i := range max(n, 0) {
		if err := l.sessions[events[i].Fd].read(); err != nil {
			return err
		}
	}
	return nil
}

// read reads the available bytes and handles each complete frame.
func (s *thinSession) read() error {
	s.unread = slices.Grow(s.unread, 64<<10)
	n, err := syscall.Read(int(s.file.Fd()), s.unread[len(s.unread):cap(s.unread)])
	if n <= 0 {
		return fmt.Errorf("library: the server closed a connection: %w", err)
	}
	frames := s.unread[:len(s.unread)+n]
	for len(frames) >= 4 {
		size := int(frames[0])<<24 | int(frames[1])<<16 | int(frames[2])<<8 | int(frames[3])
		if size < 0 || size > wire.DefaultMaxFrame || len(frames)-4 < size {
			break
		}
		if err := s.frame(frames[4 : 4+size]); err != nil {
			return err
		}
		frames = frames[4+size:]
	}
	s.unread = append(s.unread[:0], frames...)
	return nil
}

// frame handles a reply or an event.
func (s *thinSession) frame(body []byte) error {
	var h wire.ReplyHeader
	r := jute.NewReader(body)
	h.Decode(r)
	if h.Err != wire.ErrOK {
		return fmt.Errorf("library: the server's answer to request %d: %w", h.Xid, h.Err)
	}
	switch h.Xid {
	case wire.XidEvent:
		var e wire.WatcherEvent
		e.Decode(r)
		return s.event(e)
	case xidCreate:
		var p wire.Create2Response
		p.Decode(r)
		s.own, s.czxid = strings.TrimPrefix(p.Path, s.loop.parent+"/"), p.Stat.Czxid
	case xidList:
		var p wire.GetChildrenResponse
		p.Decode(r)
		return s.listed(p.Children)
	case xidWatch:
		if s.watching = true; s.deleted {
			return s.list()
		}
	case xidRelease:
		return s.enqueue()
	}
	return r.Err()
}

// event handles the deletion of the blocker, which grants the lock if the blocker was marked.
func (s *thinSession) event(e wire.WatcherEvent) error {
	switch {
	case e.Type == wire.EventNodeCreated && e.Path == s.markOf(s.blocker):
		s.marked = s.watching
	case e.Type == wire.EventNodeDeleted && e.Path == s.loop.parent+"/"+s.blocker:
		switch {
		case s.marked:
			return s.granted()
		case s.watching:
			return s.list()
		}
		s.deleted = true
	}
	return nil
}

// enqueue creates an entry and then lists the queue.
func (s *thinSession) enqueue() error {
	*s = thinSession{loop: s.loop, file: s.file, unread: s.unread}
	b := wire.AppendRequest(nil, xidCreate, wire.OpCreate2, &wire.CreateRequest{
		Path: s.loop.parent + "/" + entryPrefix, Data: entryData, ACL: openACL(), Flags: wire.ModeEphemeralSequential})
	return s.write(wire.AppendRequest(b, xidList, wire.OpGetChildren, &wire.GetChildrenRequest{Path: s.loop.parent}))
}

func (s *thinSession) list() error {
	return s.write(wire.AppendRequest(nil, xidList, wire.OpGetChildren, &wire.GetChildrenRequest{Path: s.loop.parent}))
}

// listed finds the predecessor and watches it. Without a predecessor, it holds the lock.
func (s *thinSession) listed(children []string) error {
	s.blocker, s.watching, s.marked, s.deleted = "", false, false, false
	for _, c := range children {
		if strings.HasPrefix(c, entryPrefix) && c < s.own && c > s.blocker {
			s.blocker = c
		}
	}
	if s.blocker == "" {
		return s.granted()
	}
	s.waited = true
	return s.write(wire.AppendRequest(nil, xidWatch, wire.OpSetWatches, &wire.SetWatches{
		RelativeZxid: s.czxid,
		DataWatches:  []string{s.loop.parent + "/" + s.own, s.loop.parent + "/" + s.blocker},
		ExistWatches: []string{s.markOf(s.blocker)},
		ChildWatches: []string{}, // null would be an error
	}))
}

// granted holds the lock and releases it.
func (s *thinSession) granted() error {
	l, now := s.loop, time.Now()
	if l.cycles > 0 && s.waited {
		l.handOver = append(l.handOver, now.Sub(l.released))
	}
	l.cycles, l.released = l.cycles+1, now
	remove := &wire.DeleteRequest{Path: l.parent + "/" + s.own, Version: -1}
	if !s.waited {
		return s.write(wire.AppendRequest(nil, xidRelease, wire.OpDelete, remove))
	}
	mark := s.markOf(s.own)
	return s.write(wire.AppendRequest(nil, xidRelease, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: mark, ACL: openACL(), Flags: wire.ModePersistent}},
		{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: mark, Version: -1}},
		{Op: wire.OpDelete, Req: remove},
	}}))
}

func (s *thinSession) write(frames []byte) error {
	if _, err := syscall.Write(int(s.file.Fd()), frames); err != nil {
		return fmt.Errorf("library: %w", err)
	}
	return nil
}

// markOf returns the path of the mark that the release of an entry creates.
func (s *thinSession) markOf(entry string) string {
	return s.loop.parent + "/mark-" + strings.TrimPrefix(entry, entryPrefix)
}

func openACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
}
