package runkill

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/child"
	"github.com/zklock/zklock/test/runkill/stamp"
)

// stage is a resource and processes that can be its members.
type stage struct {
	*testing.T
	r   *Resource
	rec *Record
}

func newStage(t *testing.T, members int) *stage {
	r, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &stage{T: t, r: r, rec: r.Begin(7, members)}
}

// join takes in a member that is this very process, which lives.
func (s *stage) join(run, number uint16, token, at int64) *net.UnixConn {
	s.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.r.Path(), Net: "unix"})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	s.send(conn, stamp.Message{Kind: stamp.Hello, Trial: 7, Run: run, Member: number, Token: token, At: at})
	return conn
}

func (s *stage) send(conn *net.UnixConn, m stamp.Message) byte {
	s.Helper()
	answer, err := m.Send(conn)
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// write is a sign of life of a member.
func (s *stage) write(conn *net.UnixConn, run uint16, token, at int64) byte {
	s.Helper()
	return s.send(conn, stamp.Message{Kind: stamp.Write, Trial: 7, Run: run, Token: token, At: at})
}

// within waits for a channel.
func (s *stage) within(what string, c <-chan struct{}) {
	s.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		s.Fatalf("%s never came", what)
	}
}

func TestResourceRefusesLowerTokens(t *testing.T) {
	s := newStage(t, 1)
	old, next := s.join(1, 0, 5, 10), s.join(2, 0, 6, 20)
	for _, step := range []struct {
		conn  *net.UnixConn
		run   uint16
		token int64
		want  byte
	}{{old, 1, 5, stamp.Took}, {old, 1, 5, stamp.Took}, {next, 2, 6, stamp.Took}, {old, 1, 5, stamp.Refused}, {next, 2, 6, stamp.Took}} {
		if got := s.write(step.conn, step.run, step.token, 30); got != step.want {
			t.Errorf("token %d was answered by %d, want %d", step.token, got, step.want)
		}
	}
	if j := s.rec.Judge(); j.Refused != 1 || j.Writes != 5 || s.rec.Stale() != 1 || j.Runs != 2 {
		t.Errorf("%+v", j)
	}
}

func TestResourceTellsOfStartsAndEnds(t *testing.T) {
	s := newStage(t, 2)
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

func TestResourceKnowsNoOtherTrial(t *testing.T) {
	s := newStage(t, 1)
	conn, err := net.Dial("unix", s.r.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := (stamp.Message{Kind: stamp.Hello, Trial: 8, Run: 1}).Send(conn); !errors.Is(err, io.EOF) {
		t.Errorf("an unknown trial: %v", err)
	}
}

// TestJudge feeds one broken record of each kind. An empty want is one in order.
func TestJudge(t *testing.T) {
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
			test.rec.mu = newStage(t, 1).rec.mu
			switch all := strings.Join(test.rec.Judge().Violations, "\n"); {
			case test.want == "" && all != "":
				t.Errorf("a record in order is refused:\n%s", all)
			case !strings.Contains(all, test.want):
				t.Errorf("no %q in:\n%s", test.want, all)
			}
		})
	}
}

func TestJudgeMeasures(t *testing.T) {
	s := newStage(t, 1)
	rec := Record{mu: s.rec.mu, members: []*member{
		{run: 1, token: 5, first: 10, last: 20}, {run: 2, token: 6, first: 50, last: 60}, {run: 3, token: 7, first: 61, last: 70},
	}}
	if j := rec.Judge(); len(j.Margins) != 2 || j.Margins[0] != 30 || j.Margins[1] != 1 || j.Runs != 3 {
		t.Errorf("%+v", j)
	}
}

// TestTheKernelIsAsked: a member that lives when another command begins is seen,
// whatever it has written; one that has ended is not.
func TestTheKernelIsAsked(t *testing.T) {
	s := newStage(t, 1)
	s.join(1, 3, 5, 10) // this process, which lives
	s.join(2, 0, 6, 20)
	want := "member 3 of command 1 lived when command 2 began"
	if all := strings.Join(s.rec.Judge().Violations, "\n"); !strings.Contains(all, want) {
		t.Errorf("no %q in: %q", want, all)
	}
	p, err := child.Start(exec.Command("sleep", "1000"))
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
	rec.joined(&member{run: 2, fd: fd})
	s.r.mu.Unlock()
	if len(rec.alive) > 0 {
		t.Errorf("who has ended counts as alive: %q", rec.alive)
	}
	rec.members = rec.members[:1] // one descriptor, which is closed once
}
