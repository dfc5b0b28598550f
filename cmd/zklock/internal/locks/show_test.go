package locks

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/inspect"
)

// hex32 is a GUID in the format of kazoo.
const hex32 = "0f8fad5bd9cb469fa16570867728950e"

// lockOf returns a lock with these entries, as package inspect does.
func lockOf(kind inspect.Kind, permits int, warnings []string, entries ...zklock.Entry) *inspect.Lock {
	l := &inspect.Lock{Path: "/zklock/demo", Kind: kind, Permits: permits, Warnings: warnings}
	turn := 0
	for i, e := range entries {
		made := inspect.Entry{Entry: e, Recipe: inspect.RecipeOf(e)}
		switch {
		case e.Mode == zklock.Stray:
			made.Position = -1
		case !e.Holder:
			if i == 0 || !inspect.SameAcquire(entries[i-1], e) {
				turn++
			}
			made.Position = turn
		}
		l.Entries = append(l.Entries, made)
	}
	return l
}

// onPath sets the path of a lock.
func onPath(path string, l *inspect.Lock) *inspect.Lock {
	l.Path = path
	return l
}

func TestPrintDetails(t *testing.T) {
	now := time.Now()
	stray := zklock.Entry{Path: "/zklock/demo", Node: "/zklock/demo/junk", Name: "junk", Mode: zklock.Stray, Data: "junk", Since: now}
	permit := zklock.Entry{Path: "/zklock/demo", Node: "/zklock/demo/" + hex32, Name: hex32, Mode: zklock.Stray, Data: "worker-3", Session: 5, Since: now.Add(-time.Second)}
	downgraded := clitest.Entry("h", 1, true, now, time.Minute)
	downgraded.Mode, downgraded.Owner.Token, downgraded.Name = zklock.Shared, 9, clitest.EntryName("-__READ__", 1)
	asked := clitest.Entry("r", 7, true, now, time.Minute)
	asked.Revoked = true
	twin := clitest.Entry("w", 2, false, now, time.Second)
	tests := []struct {
		name string
		s    *inspect.Lock
		want string
	}{
		{"free", lockOf("", 0, nil), "demo is free\n"},
		{"a free semaphore", lockOf(inspect.KindSemaphore, 5, nil), "demo: 0 of 5 permits held\n"},
		{"a queue", lockOf(inspect.KindQueue, 0, nil, clitest.Entry("h", 1, true, now, time.Minute), clitest.Entry("w", 2, false, now, time.Second)),
			`POSITION  WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds     h:1  ann   backup   exclusive  9      1m00s  zklock mutex
1         w:2  ann   backup   exclusive  -      1s     zklock mutex
`},
		{"one who waits with two entries", lockOf(inspect.KindQueue, 0, nil, clitest.Entry("h", 1, true, now, time.Minute), twin, twin, clitest.Entry("x", 3, false, now, 0)),
			`POSITION  WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds     h:1  ann   backup   exclusive  9      1m00s  zklock mutex
1         w:2  ann   backup   exclusive  -      1s     zklock mutex
1         w:2  ann   backup   exclusive  -      1s     zklock mutex
2         x:3  ann   backup   exclusive  -      0ms    zklock mutex
`},
		{"a writer that became a reader, and one who was asked", lockOf(inspect.KindQueue, 0, nil, downgraded, asked),
			`POSITION  WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds     h:1  ann   backup   shared     9      1m00s  zklock reader, was writer
holds     r:7  ann   backup   exclusive  9      1m00s  zklock mutex
r:7 was asked to release it
`},
		{"kazoo's semaphore is not free", lockOf(inspect.KindQueue, 0, []string{"kazoo is another", "1 stray"}, permit),
			`demo: 1 permit of kazoo's Semaphore held
POSITION  WHO       USER  COMMAND  MODE   TOKEN  SINCE  RECIPE
stray     worker-3  -     -        stray  -      1s     -
warning: kazoo is another
warning: 1 stray
`},
		{"a stray in a free lock", lockOf(inspect.KindQueue, 0, []string{"1 stray"}, stray),
			`demo is free
POSITION  WHO   USER  COMMAND  MODE   TOKEN  SINCE  RECIPE
stray     junk  -     -        stray  -      0ms    -
warning: 1 stray
`},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		if err := printLock(&out, tt.s, "demo", now); err != nil || out.String() != tt.want {
			t.Errorf("%s: %v, got\n%swant\n%s", tt.name, err, out.String(), tt.want)
		}
	}
}

// fullWriter is a writer that fails.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestPrintReturnsWriteError(t *testing.T) {
	now := time.Now()
	s := lockOf(inspect.KindQueue, 0, nil, clitest.Entry("h", 1, true, now, 0))
	if err := printLock(fullWriter{}, s, "demo", now); err == nil {
		t.Error("what show could not write is lost in silence")
	}
	if err := printLock(fullWriter{}, lockOf(inspect.KindQueue, 0, nil), "demo", now); err == nil {
		t.Error("that a lock is free is lost in silence")
	}
	if err := new(lockTable).print(fullWriter{}, []*inspect.Lock{s}, now); err == nil {
		t.Error("what ls could not write is lost in silence")
	}
	if err := (&cli.Output{Form: cli.OutJSON}).Write(fullWriter{}, lockList([]*inspect.Lock{s}, nil, now)); err == nil {
		t.Error("what ls --json could not write is lost in silence")
	}
	if err := printAsked(fullWriter{}, "demo", s.Entries, true, now); err == nil {
		t.Error("what revoke could not write is lost in silence")
	}
}

// TestPrintWhatOthersWrote checks that data of other clients cannot break a line, or hide a part
// of it.
func TestPrintWhatOthersWrote(t *testing.T) {
	now := time.Now()
	big := strings.Repeat("h", 1<<20)
	e := clitest.Entry(big, 1, true, now, 0)
	e.Owner.User, e.Owner.Command = big, big
	s := lockOf(inspect.KindQueue, 0, nil, e, clitest.Entry("w", 2, false, now, 0))
	s.Path = "/zklock/a\u202eb"
	var shown, listed, asked bytes.Buffer
	if err := errors.Join(printLock(&shown, s, "a", now), new(lockTable).print(&listed, []*inspect.Lock{s}, now), printAsked(&asked, "a", s.Entries, true, now)); err != nil {
		t.Fatal(err)
	}
	for what, out := range map[string]*bytes.Buffer{"show": &shown, "ls": &listed, "revoke": &asked} {
		if n := out.Len(); n == 0 || n > 2000 {
			t.Errorf("%s writes %d bytes", what, n)
		}
	}
	if got := listed.String(); !strings.Contains(got, `"a\u202eb"`) || strings.Contains(got, "\u202e") {
		t.Errorf("the path is not quoted: %q", got)
	}
	var named, forged, gone bytes.Buffer
	e = clitest.Entry("h", 1, true, now, 0)
	e.Owner.Command = "x  shared  1  0s"
	odd := []*inspect.Lock{onPath("/zklock/--yes", lockOf(inspect.KindQueue, 0, nil, e)), onPath("/zklock/a  exclusive  root:1", lockOf(inspect.KindQueue, 0, nil, e))}
	parents := []inspect.EmptyParent{{Path: "/zklock/a  3d  in use"}}
	if err := errors.Join((&cli.Output{Form: cli.OutName}).Write(&named, lockList(odd, nil, now)), new(lockTable).print(&forged, odd, now), new(gcFlags).printTable(&gone, "/", parents)); err != nil {
		t.Fatal(err)
	}
	if got, want := named.String(), "/zklock/--yes\na  exclusive  root:1\n"; got != want {
		t.Errorf("-o name writes %q, want %q: no name may be a flag", got, want)
	}
	for _, text := range []string{`a \x20exclusive \x20root:1`, `x \x20shared \x201 \x200s`} {
		if !strings.Contains(forged.String(), text) {
			t.Errorf("ls shows other columns than it has:\n%s", forged.String())
		}
	}
	if !strings.Contains(gone.String(), `/zklock/a \x203d \x20in use`) {
		t.Errorf("gc shows other columns than it has:\n%s", gone.String())
	}
}

func TestPrintLocks(t *testing.T) {
	now := time.Now()
	permit := func(host string, pid int) zklock.Entry {
		e := clitest.At("/zklock/sem", clitest.Entry(host, pid, true, now, time.Minute))
		e.Mode = zklock.Permit
		return e
	}
	node := clitest.Entry("n", 4, true, now, time.Hour)
	node.Path, node.Node = "/n", "/n"
	var out bytes.Buffer
	found := []*inspect.Lock{
		onPath("/zklock/demo", lockOf(inspect.KindQueue, 0, nil, clitest.Entry("h", 1, true, now, time.Minute), clitest.Entry("w", 2, false, now, time.Second))),
		onPath("/zklock/sem", lockOf(inspect.KindSemaphore, 4, nil, permit("a", 1), permit("a", 1), permit("b", 2))),
		onPath("/zklock/curator", lockOf(inspect.KindSemaphore, 0, nil, permit("a", 1))),
		onPath("/n", lockOf(inspect.KindNode, 0, nil, node)),
		onPath("/apps/x", lockOf(inspect.KindQueue, 0, nil, clitest.Entry("w", 2, false, now, time.Second))),
	}
	if err := new(lockTable).print(&out, found, now); err != nil {
		t.Fatal(err)
	}
	want := `LOCK     MODE       HOLDER  COMMAND  SINCE  WAITING
demo     exclusive  h:1     backup   1m00s  1
sem      3 of 4     a:1 +1  backup   1m00s  0
curator  1 permit   a:1     backup   1m00s  0
/n       node       n:4     backup   1h00m  0
/apps/x  -          -       -        -      1
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestPrintAsked(t *testing.T) {
	now := time.Now()
	permit := clitest.Entry("h", 1, true, now, time.Minute)
	kazoo, curator := clitest.Entry("k", 2, true, now, time.Second), clitest.Entry("c", 3, true, now, time.Second)
	kazoo.Owner, kazoo.Data, kazoo.Name = zklock.Owner{}, "kazoo-id", hex32+"__lock__0000000001"
	curator.Owner, curator.Data = zklock.Owner{}, "10.0.0.7"
	tests := []struct {
		asked []inspect.Entry
		all   bool
		want  string
	}{
		{nil, true, "demo is free\n"},
		{nil, false, ""},
		{lockOf(inspect.KindQueue, 0, nil, permit, permit).Entries, true, "asked h:1 (backup), whose entry is 1m00s old\n"},
		{lockOf(inspect.KindQueue, 0, nil, curator).Entries, true, "asked 10.0.0.7, whose entry is 1s old; the holder sees the request only if it is a Curator mutex that was made revocable\n"},
	}
	l := lockOf(inspect.KindQueue, 0, nil, permit, kazoo, curator)
	ignoring := notAsked(l, 0, l.Entries[:1])
	if len(ignoring) != 1 || ignoring[0].Data != "kazoo-id" {
		t.Errorf("not asked: %+v", ignoring)
	}
	for _, tt := range tests {
		var out bytes.Buffer
		if err := printAsked(&out, "demo", tt.asked, tt.all, now); err != nil || out.String() != tt.want {
			t.Errorf("got %q, %v, want %q", out.String(), err, tt.want)
		}
	}
}
