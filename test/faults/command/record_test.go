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

// member is a process of a command.
type member struct {
	run    uint16 // the command
	number uint16
	pid    int
	fd     int // a descriptor of the process, until the resource is closed
	token  int64
	first  int64 // its start
	last   int64 // its last message
	wrote  bool
	over   bool
}

// Record has the commands of a trial, which all use one lock.
type Record struct {
	// OldReady is closed when every member of the first command has written, NewStarted
	// at the first message of another command.
	OldReady, NewStarted chan struct{}

	mu      *sync.Mutex // the resource's; guards the fields below
	wanted  int         // members of the first command
	members []*member
	runs    map[uint16]bool // commands that have sent a message
	oldGone chan struct{}   // closed when every member of the first command has ended
	alive   []string        // members that were alive when another command began
	dying   int             // members that were killed but still exiting when another command began
	highest int64
	applied []int64 // the tokens of applied writes, without repetitions
	writes  int
	refused int // stale writes
}

// addMember adds a member. At the first message of a command, it asks the kernel which members
// of other commands are alive. The command started before it sent the message, so a process
// that is alive now was alive at that start. A killed process counts as dead because it runs
// no more instructions, even if the kernel has not removed it yet.
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

// answer records a member's message, and returns the resource's answer.
func (r *Record) answer(m *member, msg Message) byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.last = max(m.last, msg.At)
	if msg.Kind != Write {
		return Applied
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
	if n := len(r.applied); n == 0 || r.applied[n-1] != msg.Token {
		r.applied = append(r.applied, msg.Token)
	}
	return Applied
}

// ready closes OldReady if every member of the first command has written.
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

// closeOnce closes a channel if it is open. The caller holds the record's mutex.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Started reports whether a command has sent a message.
func (r *Record) Started(run uint16) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[run]
}

// Stale returns the number of refused stale writes.
func (r *Record) Stale() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Leader returns the process ID of the first command, which is also the ID of its process
// group, or 0 if it is unknown.
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

// KillAll kills all members that are alive. It uses process descriptors, so it never kills
// another process.
func (r *Record) KillAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		_ = unix.PidfdSendSignal(m.fd, unix.SIGKILL, nil, 0) // it may have ended
	}
}

// Judgement is the result of a trial at the resource.
type Judgement struct {
	Violations []string
	// Margins are the times from the last message of a command to the start of the next
	// command, in the order of the starts.
	Margins []time.Duration
	Refused int // stale writes
	Writes  int
	Runs    int // commands that have started
	Dying   int // members that were killed but still exiting when another command began
}

// life is the time of a command from its start to its last message.
type life struct {
	run         uint16
	first, last int64
	token       int64
}

// lives returns the lives of all commands in the order of their starts.
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

// Judge checks a trial whose processes have ended.
func (r *Record) Judge() Judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.lives()
	j := Judgement{Refused: r.refused, Writes: r.writes, Runs: len(all), Dying: r.dying, Violations: slices.Clone(r.alive)}
	add := func(format string, args ...any) { j.Violations = append(j.Violations, fmt.Sprintf(format, args...)) }
	var before *life // the earlier command with the latest message
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
	if !slices.IsSorted(r.applied) {
		add("a stale write was applied: the tokens were %#x", r.applied)
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

// join adds this process as a member.
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
		s.Fatalf("timeout while waiting for %s", what)
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
	}{{old, 1, 5, Applied}, {old, 1, 5, Applied}, {next, 2, 6, Applied}, {old, 1, 5, Refused}, {next, 2, 6, Applied}} {
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
		t.Error("the command counts as ready before all members have written")
	default:
	}
	s.write(second, 1, 5, 13)
	s.within("writes of all members", s.rec.OldReady)
	if !s.rec.Started(1) || s.rec.Started(2) || s.rec.Leader() == 0 {
		t.Errorf("the first has spoken: %v; the second: %v; leader %d", s.rec.Started(1), s.rec.Started(2), s.rec.Leader())
	}
	_ = first.Close()
	s.join(2, 0, 6, 20)
	s.within("the next command", s.rec.NewStarted)
	select {
	case <-s.rec.oldGone:
		t.Error("the command counts as gone while a member is alive")
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

// TestJudgeFindsEachViolation checks one wrong record of each kind. If want is empty, the
// record has no violations.
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
		{"recorded in another order", Record{members: []*member{m(2, 0, 6, 21, 30), m(1, 0, 5, 10, 20)}}, ""},
		{"a write after the next began", Record{members: []*member{m(1, 0, 5, 10, 25), m(2, 0, 6, 21, 30)}}, "command 1 wrote 4ns after command 2 began"},
		{"a write when the next began", Record{members: []*member{m(1, 0, 5, 10, 21), m(2, 0, 6, 21, 30)}}, "command 1 wrote 0s after"},
		{"a late write of a child", Record{members: []*member{m(1, 0, 5, 10, 15), m(1, 1, 5, 12, 25), m(2, 0, 6, 21, 30)}}, "command 1 wrote 4ns after command 2 began"},
		{"a late write of a late child", Record{members: []*member{m(1, 0, 5, 10, 15), m(2, 0, 6, 21, 30), m(1, 1, 5, 22, 23)}}, "command 1 wrote 2ns after"},
		{"a write after two later starts", Record{members: []*member{m(1, 0, 5, 10, 50), m(2, 0, 6, 21, 22), m(3, 0, 7, 30, 40)}}, "command 1 wrote 20ns after command 3 began"},
		{"a member alive", Record{alive: []string{"member 0 lived"}}, "member 0 lived"},
		{"the same token", Record{members: []*member{m(1, 0, 5, 10, 20), m(2, 0, 5, 21, 30)}}, "is not above"},
		{"a lower token", Record{members: []*member{m(1, 0, 5, 10, 20), m(2, 0, 4, 21, 30)}}, "is not above"},
		{"a stale write applied", Record{applied: []int64{5, 6, 5}}, "a stale write was applied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.rec.mu = newResourceTest(t, 1).rec.mu
			switch all := strings.Join(test.rec.Judge().Violations, "\n"); {
			case test.want == "" && all != "":
				t.Errorf("violations in a valid record:\n%s", all)
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

// TestLiveMemberIsAViolation checks that a member that is alive when another command begins is
// a violation, and that one that has ended is not.
func TestLiveMemberIsAViolation(t *testing.T) {
	s := newResourceTest(t, 1)
	s.join(1, 3, 5, 10) // this process, which is alive
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
		t.Error("a sleeping process counts as dead")
	}
	p.Kill()
	if lives(fd) {
		t.Error("a killed process counts as alive")
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
