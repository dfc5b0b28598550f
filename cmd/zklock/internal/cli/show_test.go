package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
)

func TestPrintSurvey(t *testing.T) {
	now := time.Now()
	stray := zklock.Entry{Path: "/zklock/demo", Node: "/zklock/demo/junk", Name: "junk", Mode: zklock.Stray, Data: "junk", Since: now}
	permit := zklock.Entry{Path: "/zklock/demo", Node: "/zklock/demo/" + hex32, Name: hex32, Mode: zklock.Stray, Data: "worker-3", Session: 5, Since: now.Add(-time.Second)}
	downgraded := entry("h", 1, true, now, time.Minute)
	downgraded.Mode, downgraded.Owner.Token, downgraded.Name = zklock.Shared, 9, curatorNode("-__READ__", 1)
	asked := entry("r", 7, true, now, time.Minute)
	asked.Revoked = true
	twin := entry("w", 2, false, now, time.Second)
	tests := []struct {
		name string
		s    survey
		want string
	}{
		{"free", survey{}, "demo is free\n"},
		{"a free semaphore", survey{shape: shapeSemaphore, permits: 5}, "demo: 0 of 5 permits held\n"},
		{"a queue", survey{entries: []zklock.Entry{entry("h", 1, true, now, time.Minute), entry("w", 2, false, now, time.Second)}},
			`TURN   WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds  h:1  ann   backup   exclusive  9      1m00s  zklock mutex
1st    w:2  ann   backup   exclusive  -      1s     zklock mutex
`},
		{"one who waits with two entries", survey{entries: []zklock.Entry{entry("h", 1, true, now, time.Minute), twin, twin, entry("x", 3, false, now, 0)}},
			`TURN   WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds  h:1  ann   backup   exclusive  9      1m00s  zklock mutex
1st    w:2  ann   backup   exclusive  -      1s     zklock mutex
1st    w:2  ann   backup   exclusive  -      1s     zklock mutex
2nd    x:3  ann   backup   exclusive  -      0ms    zklock mutex
`},
		{"a writer that became a reader, and one who was asked", survey{entries: []zklock.Entry{downgraded, asked}},
			`TURN   WHO  USER  COMMAND  MODE       TOKEN  SINCE  RECIPE
holds  h:1  ann   backup   shared     9      1m00s  zklock reader, was writer
holds  r:7  ann   backup   exclusive  9      1m00s  zklock mutex
r:7 was asked to give it back
`},
		{"kazoo's semaphore is not free", survey{entries: []zklock.Entry{permit}},
			`demo: 1 permit of kazoo's Semaphore held
TURN   WHO       USER  COMMAND  MODE   TOKEN  SINCE  RECIPE
stray  worker-3  -     -        stray  -      1s     -
warning: kazoo's Semaphore is another recipe, which no other's excludes: give it a path of its own
warning: 1 stray, no entry of a lock: zklock passes over it, Curator may wait for it for ever, and go-zookeeper fails beside it
`},
		{"a stray in a free lock", survey{entries: []zklock.Entry{stray}},
			`demo is free
TURN   WHO   USER  COMMAND  MODE   TOKEN  SINCE  RECIPE
stray  junk  -     -        stray  -      0ms    -
warning: 1 stray, no entry of a lock: zklock passes over it, Curator may wait for it for ever, and go-zookeeper fails beside it
`},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		if err := tt.s.print(&out, "demo", now); err != nil || out.String() != tt.want {
			t.Errorf("%s: %v, got\n%swant\n%s", tt.name, err, out.String(), tt.want)
		}
	}
}

// full is a writer that fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestPrintToAFullDisk(t *testing.T) {
	now := time.Now()
	s := survey{path: "/zklock/demo", entries: []zklock.Entry{entry("h", 1, true, now, 0)}}
	if err := s.print(full{}, "demo", now); err == nil {
		t.Error("what show could not write is lost in silence")
	}
	if err := (&survey{}).print(full{}, "demo", now); err == nil {
		t.Error("that a lock is free is lost in silence")
	}
	if err := printLocks(full{}, []survey{s}, now); err == nil {
		t.Error("what ls could not write is lost in silence")
	}
	if err := (&output{form: outJSON}).write(full{}, lockList([]survey{s})); err == nil {
		t.Error("what ls --json could not write is lost in silence")
	}
	if err := printAsked(full{}, "demo", s.entries, true, now); err == nil {
		t.Error("what revoke could not write is lost in silence")
	}
}

// Whatever somebody wrote, a line stays one that people can read.
func TestPrintWhatOthersWrote(t *testing.T) {
	now := time.Now()
	big := strings.Repeat("h", 1<<20)
	e := entry(big, 1, true, now, 0)
	e.Owner.User, e.Owner.Command = big, big
	s := survey{path: "/zklock/a\u202eb", entries: []zklock.Entry{e, entry("w", 2, false, now, 0)}}
	var shown, listed, asked, waited bytes.Buffer
	if err := errors.Join(s.print(&shown, "a", now), printLocks(&listed, []survey{s}, now), printAsked(&asked, "a", s.entries, true, now)); err != nil {
		t.Fatal(err)
	}
	waited.WriteString(describe("a", s.entries, zklock.Owner{Host: "w", PID: 2}, now))
	for what, out := range map[string]*bytes.Buffer{"show": &shown, "ls": &listed, "revoke": &asked, "the waiting line": &waited} {
		if n := out.Len(); n == 0 || n > 2000 {
			t.Errorf("%s writes %d bytes", what, n)
		}
	}
	if got := listed.String(); !strings.Contains(got, `"a\u202eb"`) || strings.Contains(got, "\u202e") {
		t.Errorf("the path is not quoted: %q", got)
	}
}

func TestView(t *testing.T) {
	now := time.Now()
	s := survey{path: "/zklock/demo", shape: shapeQueue}
	b, err := json.Marshal(s.view())
	if want := `{"path":"/zklock/demo","kind":"queue","holders":0,"waiting":0,"entries":[]}`; err != nil || string(b) != want {
		t.Errorf("a free lock is %s, %v, want %s", b, err, want)
	}
	asked := entry("h", 1, true, now, 0)
	asked.Revoked = true
	s = survey{path: "/zklock/demo", shape: shapeSemaphore, permits: 3, entries: []zklock.Entry{asked, entry("w", 2, false, now, 0)}}
	b, err = json.Marshal(s.view())
	for _, want := range []string{`"kind":"semaphore","permits":3,"holders":1,"waiting":1`, `"recipe":{"library":"zklock","kind":"mutex"}`, `"revoked":true`, `"warnings":["a semaphore and other locks`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %v: no %s", b, err, want)
		}
	}
}

func TestPrintLocks(t *testing.T) {
	now := time.Now()
	permit := func(host string, pid int) zklock.Entry {
		e := at("/zklock/sem", entry(host, pid, true, now, time.Minute))
		e.Mode = zklock.Permit
		return e
	}
	node := entry("n", 4, true, now, time.Hour)
	node.Path, node.Node = "/n", "/n"
	var out bytes.Buffer
	found := []survey{
		{path: "/zklock/demo", shape: shapeQueue, entries: []zklock.Entry{entry("h", 1, true, now, time.Minute), entry("w", 2, false, now, time.Second)}},
		{path: "/zklock/sem", shape: shapeSemaphore, permits: 4, entries: []zklock.Entry{permit("a", 1), permit("a", 1), permit("b", 2)}},
		{path: "/zklock/curator", shape: shapeSemaphore, entries: []zklock.Entry{permit("a", 1)}},
		{path: "/n", shape: shapeNode, entries: []zklock.Entry{node}},
		{path: "/apps/x", shape: shapeQueue, entries: []zklock.Entry{entry("w", 2, false, now, time.Second)}},
	}
	if err := printLocks(&out, found, now); err != nil {
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
	permit := entry("h", 1, true, now, time.Minute)
	kazoo, curator := entry("k", 2, true, now, time.Second), entry("c", 3, true, now, time.Second)
	kazoo.Owner, kazoo.Data, kazoo.Name = zklock.Owner{}, "kazoo-id", hex32+"__lock__0000000001"
	curator.Owner, curator.Data = zklock.Owner{}, "10.0.0.7"
	tests := []struct {
		asked []zklock.Entry
		all   bool
		want  string
	}{
		{nil, true, "demo is free: nobody to ask\n"},
		{nil, false, ""},
		{[]zklock.Entry{permit, permit}, true, "asked h:1 (backup), which came 1m00s ago\n"},
		{[]zklock.Entry{kazoo}, true, "asked kazoo-id, which came 1s ago; kazoo does not look for such wishes\n"},
		{[]zklock.Entry{curator}, true, "asked 10.0.0.7, which came 1s ago; it sees the wish only if it is Curator's and made revocable\n"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		if err := printAsked(&out, "demo", tt.asked, tt.all, now); err != nil || out.String() != tt.want {
			t.Errorf("got %q, %v, want %q", out.String(), err, tt.want)
		}
	}
}
