package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/harness"
)

// oldRun is the number of the first command.
const oldRun = 1

// member is one process of a command.
type member struct {
	run    uint16 // the command
	number uint16
	pid    int
	fd     int // of the process, until the resource is closed
	token  int64
	first  int64 // when it began
	last   int64 // its last message
	wrote  bool
	over   bool
}

// Record is what the resource knows of a trial: of the commands under one lock.
type Record struct {
	// OldReady is closed when every member of the first command has written, NewStarted
	// at the first message of another command.
	OldReady, NewStarted chan struct{}

	mu      *sync.Mutex // the resource's; guards what follows
	wanted  int         // members of the first command
	members []*member
	runs    map[uint16]bool // commands that have sent a message
	oldGone chan struct{}   // closed when every member of the first command has ended
	alive   []string        // members that were alive when another command began
	dying   int             // members that were, but had been killed
	highest int64
	taken   []int64 // the tokens of the writes that were applied, without repetitions
	writes  int
	refused int // stale writes
}

// addMember adds a member. At the first message of a command, it asks the kernel which
// members of other commands are alive: the command began before it sent the message, so
// a process that is alive now was alive then. A process that was killed counts as dead:
// the kernel lets it run no more instructions, however late it removes it.
func (r *Record) addMember(m *member) {
	if !r.runs[m.run] {
		for _, o := range r.members {
			if o.run == m.run || !lives(o.fd) {
				continue
			}
			if killPending(o.pid) || !lives(o.fd) {
				r.dying++
				continue
			}
			r.alive = append(r.alive, fmt.Sprintf("member %d of command %d lived when command %d began", o.number, o.run, m.run))
		}
		r.runs[m.run] = true
	}
	r.members = append(r.members, m)
	if m.run != oldRun {
		closeOnce(r.NewStarted)
	}
}

// take records a member's message, and returns the resource's answer.
func (r *Record) take(m *member, msg Message) byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.last = max(m.last, msg.At)
	if msg.Kind != Write {
		return Took
	}
	r.writes++
	if !m.wrote {
		m.wrote = true
		r.ready()
	}
	if msg.Token < r.highest {
		r.refused++
		return Refused
	}
	r.highest = msg.Token
	if n := len(r.taken); n == 0 || r.taken[n-1] != msg.Token {
		r.taken = append(r.taken, msg.Token)
	}
	return Took
}

// ready closes OldReady if all members of the first command have written.
func (r *Record) ready() {
	n := 0
	for _, m := range r.members {
		if m.run == oldRun && m.wrote {
			n++
		}
	}
	if n == r.wanted {
		closeOnce(r.OldReady)
	}
}

// ended records the end of a member.
func (r *Record) ended(m *member) {
	m.over = true
	if !slices.ContainsFunc(r.members, func(o *member) bool { return o.run == oldRun && !o.over }) {
		closeOnce(r.oldGone)
	}
}

// closeOnce closes a channel unless it is closed. The caller holds the record's mutex.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Spoke reports whether a command has sent a message.
func (r *Record) Spoke(run uint16) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[run]
}

// Stale returns how many stale writes were refused so far.
func (r *Record) Stale() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Leader returns the process id of the first command, which is also the id of its process
// group, or 0 if it is not known.
func (r *Record) Leader() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.run == oldRun && m.number == 0 {
			return m.pid
		}
	}
	return 0
}

// KillAll kills all members that are alive. It uses process descriptors, and so never
// hits another process.
func (r *Record) KillAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		_ = unix.PidfdSendSignal(m.fd, unix.SIGKILL, nil, 0) // it may have ended
	}
}

// Judgement is the result of a trial as the resource saw it.
type Judgement struct {
	Violations []string // none if zklock run is right
	// Margins are the times from the last message of a command to the start of the next,
	// in the order of the starts.
	Margins []time.Duration
	Refused int // stale writes
	Writes  int
	Runs    int // commands that have started
	Dying   int // members that had been killed and not yet removed when another command began
}

// life is a command's time from its start to its last message.
type life struct {
	run         uint16
	first, last int64
	token       int64
}

// lives returns the commands' lives in the order of their starts.
func (r *Record) lives() []*life {
	by := map[uint16]*life{}
	var all []*life
	for _, m := range r.members {
		l := by[m.run]
		if l == nil {
			l = &life{run: m.run, first: m.first, token: m.token}
			by[m.run] = l
			all = append(all, l)
		}
		l.first, l.last = min(l.first, m.first), max(l.last, m.last)
	}
	slices.SortFunc(all, func(a, b *life) int { return cmp.Compare(a.first, b.first) })
	return all
}

// Judge judges a trial whose processes have ended.
func (r *Record) Judge() Judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.lives()
	j := Judgement{Refused: r.refused, Writes: r.writes, Runs: len(all), Dying: r.dying, Violations: slices.Clone(r.alive)}
	add := func(format string, args ...any) { j.Violations = append(j.Violations, fmt.Sprintf(format, args...)) }
	var before *life // of the commands that began earlier, the one with the last message
	for _, l := range all {
		if before != nil {
			margin := time.Duration(l.first - before.last)
			j.Margins = append(j.Margins, margin)
			if margin <= 0 {
				add("command %d wrote %v after command %d began", before.run, -margin, l.run)
			}
			if l.token <= before.token {
				add("the token of command %d, %#x, is not above that of command %d, %#x", l.run, l.token, before.run, before.token)
			}
		}
		if before == nil || l.last > before.last {
			before = l
		}
	}
	if !slices.IsSorted(r.taken) {
		add("a stale write was taken: the tokens were %#x", r.taken)
	}
	return j
}

// resourceTest is a resource, to which a test can add members.
type resourceTest struct {
	*testing.T
	r   *Resource
	rec *Record
}

func newResourceTest(t *testing.T, members int) *resourceTest {
	r, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &resourceTest{T: t, r: r, rec: r.Begin(7, members)}
}

// join adds a member that is this process.
func (s *resourceTest) join(run, number uint16, token, at int64) *net.UnixConn {
	s.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.r.Path(), Net: "unix"})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	s.send(conn, Message{Kind: Hello, Trial: 7, Run: run, Member: number, Token: token, At: at})
	return conn
}

func (s *resourceTest) send(conn *net.UnixConn, m Message) byte {
	s.Helper()
	answer, err := m.Send(conn)
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// write sends a write of a member.
func (s *resourceTest) write(conn *net.UnixConn, run uint16, token, at int64) byte {
	s.Helper()
	return s.send(conn, Message{Kind: Write, Trial: 7, Run: run, Token: token, At: at})
}

// within waits for a channel.
func (s *resourceTest) within(what string, c <-chan struct{}) {
	s.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		s.Fatalf("%s never came", what)
	}
}

func TestResourceRefusesLowerTokens(t *testing.T) {
	s := newResourceTest(t, 1)
	old, next := s.join(1, 0, 5, 10), s.join(2, 0, 6, 20)
	for _, step := range []struct {
		conn  *net.UnixConn
		run   uint16
		token int64
		want  byte
	}{{old, 1, 5, Took}, {old, 1, 5, Took}, {next, 2, 6, Took}, {old, 1, 5, Refused}, {next, 2, 6, Took}} {
		if got := s.write(step.conn, step.run, step.token, 30); got != step.want {
			t.Errorf("token %d was answered by %d, want %d", step.token, got, step.want)
		}
	}
	if j := s.rec.Judge(); j.Refused != 1 || j.Writes != 5 || s.rec.Stale() != 1 || j.Runs != 2 {
		t.Errorf("%+v", j)
	}
}

func TestResourceReportsStartsAndEnds(t *testing.T) {
	s := newResourceTest(t, 2)
	first := s.join(1, 0, 5, 10)
	s.write(first, 1, 5, 11)
	second := s.join(1, 1, 5, 12)
	select {
	case <-s.rec.OldReady:
		t.Error("it counts as ready before all have written")
	default:
	}
	s.write(second, 1, 5, 13)
	s.within("that all have written", s.rec.OldReady)
	if !s.rec.Spoke(1) || s.rec.Spoke(2) || s.rec.Leader() == 0 {
		t.Errorf("the first has spoken: %v; the second: %v; leader %d", s.rec.Spoke(1), s.rec.Spoke(2), s.rec.Leader())
	}
	_ = first.Close()
	s.join(2, 0, 6, 20)
	s.within("the next command", s.rec.NewStarted)
	select {
	case <-s.rec.oldGone:
		t.Error("it counts as gone while one is there")
	default:
	}
	_ = second.Close()
	s.within("the end", s.rec.oldGone)
}

func TestResourceRefusesUnknownTrial(t *testing.T) {
	s := newResourceTest(t, 1)
	conn, err := net.Dial("unix", s.r.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := (Message{Kind: Hello, Trial: 8, Run: 1}).Send(conn); !errors.Is(err, io.EOF) {
		t.Errorf("an unknown trial: %v", err)
	}
}

// TestJudgeFindsEachViolation judges one wrong record of each kind. An empty want is a
// record without violations.
func TestJudgeFindsEachViolation(t *testing.T) {
	m := func(run, number uint16, token, first, last int64) *member {
		return &member{run: run, number: number, token: token, first: first, last: last}
	}
	for _, test := range []struct {
		name string
		rec  Record
		want string
	}{
		{"nothing", Record{}, ""},
		{"one", Record{members: []*member{m(1, 0, 5, 10, 20)}}, ""},
		{"one after the other", Record{members: []*member{m(1, 0, 5, 10, 20), m(2, 0, 6, 21, 30)}}, ""},
		{"and told of in another order", Record{members: []*member{m(2, 0, 6, 21, 30), m(1, 0, 5, 10, 20)}}, ""},
		{"a write after the next began", Record{members: []*member{m(1, 0, 5, 10, 25), m(2, 0, 6, 21, 30)}}, "command 1 wrote 4ns after command 2 began"},
		{"at that very time", Record{members: []*member{m(1, 0, 5, 10, 21), m(2, 0, 6, 21, 30)}}, "command 1 wrote 0s after"},
		{"by a child", Record{members: []*member{m(1, 0, 5, 10, 15), m(1, 1, 5, 12, 25), m(2, 0, 6, 21, 30)}}, "command 1 wrote 4ns after command 2 began"},
		{"by a child that was born late", Record{members: []*member{m(1, 0, 5, 10, 15), m(2, 0, 6, 21, 30), m(1, 1, 5, 22, 23)}}, "command 1 wrote 2ns after"},
		{"past a short one", Record{members: []*member{m(1, 0, 5, 10, 50), m(2, 0, 6, 21, 22), m(3, 0, 7, 30, 40)}}, "command 1 wrote 20ns after command 3 began"},
		{"one that lived", Record{alive: []string{"member 0 lived"}}, "member 0 lived"},
		{"the same token", Record{members: []*member{m(1, 0, 5, 10, 20), m(2, 0, 5, 21, 30)}}, "is not above"},
		{"a lower token", Record{members: []*member{m(1, 0, 5, 10, 20), m(2, 0, 4, 21, 30)}}, "is not above"},
		{"a stale write taken", Record{taken: []int64{5, 6, 5}}, "a stale write was taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.rec.mu = newResourceTest(t, 1).rec.mu
			switch all := strings.Join(test.rec.Judge().Violations, "\n"); {
			case test.want == "" && all != "":
				t.Errorf("a record in order is refused:\n%s", all)
			case !strings.Contains(all, test.want):
				t.Errorf("no %q in:\n%s", test.want, all)
			}
		})
	}
}

func TestJudgeMeasuresMargins(t *testing.T) {
	s := newResourceTest(t, 1)
	rec := Record{mu: s.rec.mu, members: []*member{
		{run: 1, token: 5, first: 10, last: 20}, {run: 2, token: 6, first: 50, last: 60}, {run: 3, token: 7, first: 61, last: 70},
	}}
	if j := rec.Judge(); len(j.Margins) != 2 || j.Margins[0] != 30 || j.Margins[1] != 1 || j.Runs != 3 {
		t.Errorf("%+v", j)
	}
}

// TestLiveMemberIsAViolation checks that a member that is alive when another command
// begins is found, and that one that has ended is not.
func TestLiveMemberIsAViolation(t *testing.T) {
	s := newResourceTest(t, 1)
	s.join(1, 3, 5, 10) // this process, which lives
	s.join(2, 0, 6, 20)
	want := "member 3 of command 1 lived when command 2 began"
	if all := strings.Join(s.rec.Judge().Violations, "\n"); !strings.Contains(all, want) {
		t.Errorf("no %q in: %q", want, all)
	}
	p, err := harness.Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := pidfd(p.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if !lives(fd) {
		t.Error("a process that sleeps does not live")
	}
	p.Kill()
	if lives(fd) {
		t.Error("a process that was killed lives")
	}
	rec := s.r.Begin(9, 1)
	rec.members = append(rec.members, &member{run: 1, fd: fd})
	s.r.mu.Lock()
	rec.addMember(&member{run: 2, fd: fd})
	s.r.mu.Unlock()
	if len(rec.alive) > 0 {
		t.Errorf("a member that has ended counts as alive: %q", rec.alive)
	}
	rec.members = rec.members[:1] // one descriptor, which is closed once
}
