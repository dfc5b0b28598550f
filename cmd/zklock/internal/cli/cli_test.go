package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/zk"
)

func TestCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 125},
		{usage("x"), 2},
		{fmt.Errorf("wrapped: %w", &exitError{Code: 77}), 77},
		{fmt.Errorf("x: %w", zklock.ErrInvalidName), 2},
		{fmt.Errorf("x: %w", zk.ErrInvalidServers), 2},
		{fmt.Errorf("x: %w", child.ErrNotFound), 127},
		{fmt.Errorf("x: %w", child.ErrNotExecutable), 126},
		{fmt.Errorf("x: %w", zklock.ErrLost), 120},
	}
	for _, tt := range tests {
		if got := code(tt.err); got != tt.want {
			t.Errorf("code(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestInterruptedStatus(t *testing.T) {
	for sig, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		if got := (errInterrupted{sig}).status(); got != want {
			t.Errorf("%v gives %d, want %d", sig, got, want)
		}
	}
}

func TestInterruptible(t *testing.T) {
	signals := make(chan os.Signal)
	ctx, stop := interruptible(signals, nil)
	signals <- syscall.SIGPIPE // not one that ends programs
	if ctx.Err() != nil {
		t.Fatal("any signal interrupts")
	}
	signals <- syscall.SIGTERM
	<-ctx.Done()
	if got := code(interrupted(ctx, nil)); got != 143 {
		t.Errorf("exit code %d after TERM, want 143", got)
	}
	stop()
	ctx, stop = interruptible(signals, nil)
	stop()
	if err := interrupted(ctx, nil); err != nil {
		t.Errorf("a context that nobody interrupted gives %v", err)
	}
}

func TestFromEnvironment(t *testing.T) {
	type env map[string]string
	tests := []struct {
		name string
		args []string
		env  env
		want string // servers session wait conflict
		err  string
	}{
		{"nothing", nil, nil, " 20s 0s 124", ""},
		{"environment", nil, env{"ZKLOCK_SERVERS": "a:1", "ZKLOCK_SESSION_TIMEOUT": "5", "ZKLOCK_TIMEOUT": "1m", "ZKLOCK_CONFLICT_EXIT_CODE": "0"}, "a:1 5s 1m0s 0", ""},
		{"flags come first", []string{"--servers=b:2", "-w", "3", "-E9"}, env{"ZKLOCK_SERVERS": "a:1", "ZKLOCK_TIMEOUT": "1m", "ZKLOCK_CONFLICT_EXIT_CODE": "0"}, "b:2 20s 3s 9", ""},
		{"-n overrules a time from the environment", []string{"-n"}, env{"ZKLOCK_TIMEOUT": "1m"}, " 20s 0s 124", ""},
		{"empty is unset", nil, env{"ZKLOCK_SESSION_TIMEOUT": ""}, " 20s 0s 124", ""},
		{"what a command is told is no setting", nil, env{"ZKLOCK_SESSION": "x", "ZKLOCK_NAME": "x", "ZKLOCK_TOKEN": "x", "ZKLOCK_PATH": "x", "ZKLOCK_MODE": "x"}, " 20s 0s 124", ""},
		{"nonsense names the variable", nil, env{"ZKLOCK_TIMEOUT": "soon"}, "", `ZKLOCK_TIMEOUT is "soon"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s settings
			f := pflag.NewFlagSet("x", pflag.ContinueOnError)
			s.connectionFlags(f)
			s.waitFlags(f)
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := fromEnvironment(f, func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok })
			if err == nil {
				err = s.check(f)
			}
			if tt.err != "" {
				if code(err) != 2 || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want usage with %q", err, tt.err)
				}
				return
			}
			got := fmt.Sprintf("%s %v %v %d", s.servers, s.session.D, s.wait.D, s.conflict)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	good := settings{session: span.Value{D: defaultSession}, connect: span.Value{D: defaultConnect}, conflict: 124}
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	if err := good.check(f); err != nil {
		t.Fatal(err)
	}
	bad := []func(*settings){
		func(s *settings) { s.session.D = 1 },
		func(s *settings) { s.session.D = 25 * time.Hour },
		func(s *settings) { s.connect.D = 0 },
		func(s *settings) { s.wait.D = -1 },
		func(s *settings) { s.conflict = -1 },
		func(s *settings) { s.conflict = 256 },
	}
	for i, spoil := range bad {
		s := good
		spoil(&s)
		if err := s.check(f); code(err) != 2 {
			t.Errorf("%d: %v, want a usage error", i, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	base := []string{"PATH=/bin", "ZKLOCK_NAME=outer", "ZKLOCK_TOKEN=1", "ZKLOCK_HOME=/h", "ZKLOCK_NAMESAKE=x"}
	locks := []held{{"a b", "/zklock/a b", 42}, {"/c", "/c", 43}}
	got := told{locks: locks, mode: zklock.Shared, session: 0x1f, servers: "h:1"}.environ(base)
	want := []string{"PATH=/bin", "ZKLOCK_HOME=/h", "ZKLOCK_NAMESAKE=x", "ZKLOCK_NAME=a b", "ZKLOCK_PATH=/zklock/a b",
		"ZKLOCK_TOKEN=42", "ZKLOCK_MODE=shared", "ZKLOCK_LOCKS=42 /zklock/a b\n43 /c", "ZKLOCK_SESSION=0x1f", "ZKLOCK_SERVERS=h:1"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(base) != 5 || base[1] != "ZKLOCK_NAME=outer" {
		t.Errorf("the base was changed: %q", base)
	}
}

// entry is an entry of a queue for the tests below.
func entry(host string, pid int, holder bool, now time.Time, age time.Duration) zklock.Entry {
	return zklock.Entry{Mode: zklock.Exclusive, Holder: holder, Token: 9, Session: int64(pid), Since: now.Add(-age),
		Path: "/zklock/demo", Node: "/zklock/demo/" + curatorNode("-lock-", pid), Name: curatorNode("-lock-", pid),
		Owner: zklock.Owner{Host: host, PID: pid, User: "ann", Command: "backup"}}
}

// curatorNode is a name as Curator and zklock write them.
func curatorNode(marker string, seq int) string {
	return fmt.Sprintf("_c_0f8fad5b-d9cb-469f-a165-70867728950e%s%010d", marker, seq)
}

// at moves an entry to another lock.
func at(path string, e zklock.Entry) zklock.Entry {
	e.Path, e.Node = path, path+"/"+e.Name
	return e
}

func TestDescribe(t *testing.T) {
	now := time.Now()
	me := zklock.Owner{Host: "me", PID: 5}
	stray := zklock.Entry{Mode: zklock.Stray, Name: "x"}
	holder, mine := entry("h", 1, true, now, 130*time.Second), entry("me", 5, false, now, 0)
	foreign := zklock.Entry{Mode: zklock.Exclusive, Holder: true, Data: "10.0.0.7", Since: now.Add(-time.Second)}
	nameless := zklock.Entry{Mode: zklock.Exclusive, Holder: true, Session: 0xab, Since: now.Add(time.Minute)}
	for _, e := range []*zklock.Entry{&stray, &foreign, &nameless} {
		e.Path, e.Node = "/zklock/demo", "/zklock/demo/x"
	}
	node, twin := holder, entry("t", 8, false, now, 0)
	node.Node = node.Path
	tests := []struct {
		name    string
		entries []zklock.Entry
		want    string
	}{
		{"nothing known", nil, "waiting for demo"},
		{"not in the queue yet", []zklock.Entry{holder}, "waiting for demo"},
		{"next", []zklock.Entry{holder, mine}, "waiting for demo: 1st in line behind h:1 since 2m10s"},
		{"third", []zklock.Entry{holder, entry("a", 2, false, now, 0), entry("b", 3, false, now, 0), mine}, "waiting for demo: 3rd in line behind h:1 since 2m10s"},
		{"strays do not count", []zklock.Entry{stray, holder, stray, mine}, "waiting for demo: 1st in line behind h:1 since 2m10s"},
		{"a holder of another library", []zklock.Entry{foreign, mine}, "waiting for demo: 1st in line behind 10.0.0.7 since 1s"},
		{"a clock ahead of ours", []zklock.Entry{nameless, mine}, "waiting for demo: 1st in line behind session 0xab since 0s"},
		{"mine by now", []zklock.Entry{entry("me", 5, true, now, 0)}, "waiting for demo"},
		{"behind several readers", []zklock.Entry{holder, entry("r", 2, true, now, 0), entry("q", 3, true, now, 0), mine}, "waiting for demo: 1st in line behind h:1 +2 since 2m10s"},
		{"the second of several locks", []zklock.Entry{entry("me", 5, true, now, 0), at("/zklock/b", holder), at("/zklock/b", mine)},
			"waiting for demo, at b: 1st in line behind h:1 since 2m10s"},
		{"several locks, of none of which I have an entry", []zklock.Entry{holder, at("/b", holder)}, "waiting for demo"},
		{"a node lock, which has no line", []zklock.Entry{node}, "waiting for demo behind h:1 since 2m10s"},
		{"behind an attempt with two entries", []zklock.Entry{holder, twin, twin, mine}, "waiting for demo: 2nd in line behind h:1 since 2m10s"},
		{"nobody holds yet", []zklock.Entry{mine}, "waiting for demo: 1st in line"},
	}
	for _, tt := range tests {
		if got := describe("demo", tt.entries, me, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 5, "abc"}, {"abc", 2, "ab"}, {"äöü", 2, "äö"}, {"abc", 0, "abc"}} {
		if got := cut(tt.in, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestPrefixPath(t *testing.T) {
	for in, want := range map[string]string{"": "/zklock", "/": "/", "a": "/zklock/a", "a/": "/zklock/a", "/b/c": "/b/c"} {
		var args []string
		if in != "" {
			args = []string{in}
		}
		if got, err := prefixPath(args); err != nil || got != want {
			t.Errorf("prefixPath(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := prefixPath([]string{"a//b"}); !errors.Is(err, zklock.ErrInvalidName) {
		t.Errorf("a bad prefix gives %v", err)
	}
}

// TestPrefixFlag: it says what the argument says, and one of them is enough.
func TestPrefixFlag(t *testing.T) {
	for _, name := range []string{"ls", "top", "ui", "doctor"} {
		for line, want := range map[string]string{"": "/zklock", "/": "/", "team": "/zklock/team", "--prefix team": "/zklock/team", "--prefix /": "/", "--prefix team other": ""} {
			a := &app{}
			c, _, err := a.root().Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ParseFlags(strings.Fields(line)); err != nil {
				t.Fatalf("%s %s: %v", name, line, err)
			}
			got, err := prefixOf(c, c.Flags().Args())
			if got != want || (want == "") != (code(err) == exitUsage) {
				t.Errorf("%s %s: %q, %v; want %q", name, line, got, err, want)
			}
		}
	}
}

func TestStatusLineFinish(t *testing.T) {
	tests := []struct {
		set  string
		err  error
		want statusLine
	}{
		{outcomeExited, nil, statusLine{Outcome: outcomeExited}},
		{outcomeExited, &exitError{Code: 3}, statusLine{Outcome: outcomeExited, Exit: 3}},
		{"", usage("bad"), statusLine{Outcome: outcomeUsage, Exit: 2, Error: "bad"}},
		{"", child.ErrNotFound, statusLine{Outcome: outcomeNotFound, Exit: 127, Error: child.ErrNotFound.Error()}},
		{"", child.ErrNotExecutable, statusLine{Outcome: outcomeNotExecutable, Exit: 126, Error: child.ErrNotExecutable.Error()}},
		{"", errors.New("x"), statusLine{Outcome: outcomeFailed, Exit: 125, Error: "x"}},
	}
	for _, tt := range tests {
		s := statusLine{Outcome: tt.set}
		s.finish(tt.err)
		if !reflect.DeepEqual(s, tt.want) {
			t.Errorf("%v gives %+v, want %+v", tt.err, s, tt.want)
		}
	}
}

func TestStatusLineWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zero := 0
	s := statusLine{Outcome: outcomeExited, Lock: "a\nb", Code: &zero}
	s.write(f)
	s.write(nil)
	got, err := os.ReadFile(name)
	want := `{"outcome":"exited","exit":0,"lock":"a\nb","path":"","acquired":false,"started":false,"code":0,"released":false}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestStatusFile(t *testing.T) {
	if f, err := statusFile(-1); f != nil || err != nil {
		t.Errorf("no descriptor gives %v, %v", f, err)
	}
	if _, err := statusFile(1 << 20); code(err) != 2 {
		t.Errorf("a closed descriptor gives %v, want a usage error", err)
	}
}
