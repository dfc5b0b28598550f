package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
)

// parsed is a claim on demo by these flags and this environment.
func parsed(t *testing.T, env map[string]string, args ...string) (*claim, *settings, error) {
	t.Helper()
	k, s := &claim{}, &settings{}
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	s.connectionFlags(f)
	s.waitFlags(f)
	k.flags(f)
	if err := f.Parse(args); err != nil {
		return k, s, err
	}
	err := fromEnvironment(f, func(key string) (string, bool) { v, ok := env[key]; return v, ok })
	if err == nil {
		err = k.check(f, "demo")
	}
	return k, s, err
}

func TestClaimRefuses(t *testing.T) {
	custom := "--layout=custom:exclusive=-W-"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--shared", "--write"}, "--shared and --write: a reader shares"},
		{[]string{"--shared", "--count=2"}, "--count and --shared"},
		{[]string{"--write", "--count=2"}, "--count and --write"},
		{[]string{"--node", "--count=2"}, "--count and --node"},
		{[]string{"--node", "--shared"}, "--node and --shared"},
		{[]string{"--node", "--write"}, "--node and --write"},
		{[]string{"--node", "--lock=b"}, "--node and --lock"},
		{[]string{"--node", "--lock-delay=1"}, "--node and --lock-delay"},
		{[]string{"--node", "--layout=kazoo"}, "--node and --layout"},
		{[]string{"--count=2", "--lock-delay=1"}, "--count and --lock-delay"},
		{[]string{"--count=2", "--layout=kazoo"}, "--count and --layout"},
		{[]string{"--count=1048577"}, "at most 1048576"},
		{[]string{"--count=2000", "--permits=1025"}, "at most 1024 can be taken at once"},
		{slices.Repeat([]string{"--lock=b"}, maxLocks), "257 locks are more"},
		{[]string{"--permits=2"}, "--count N"},
		{[]string{"--permits=1"}, "--count N"},
		{[]string{"--count=0"}, "at least 1 permit"},
		{[]string{"--count=-3"}, "at least 1 permit"},
		{[]string{"--count=3", "--permits=0"}, "take at least 1"},
		{[]string{"--count=3", "--permits=4"}, "take at most so many"},
		{[]string{"--in-order"}, "name the others with --lock"},
		{[]string{"--beside-foreign"}, "give it with --shared"},
		{[]string{"--lock-delay=-1"}, "from 0 on"},
		{[]string{"--lock-delay=1", custom}, "the layout custom has none"},
		{[]string{"--shared", custom}, `no readers in the layout "custom:exclusive=-W-"`},
		{[]string{"--shared", "--layout=latch"}, "no readers"},
		{[]string{"--write", "--layout=latch"}, "has no writers"},
		{[]string{"--shared", "--layout=writelock"}, "no readers"},
		{[]string{"--write", "--layout=writelock"}, "has no writers"},
		{[]string{"--lock-delay=1", "--layout=writelock"}, "the layout writelock has none"},
		{[]string{"--lock=demo"}, "/zklock/demo is named twice"},
		{[]string{"--lock=/zklock/demo"}, "named twice"},
		{[]string{"--lock=b", "--lock=b"}, "/zklock/b is named twice"},
	}
	for _, tt := range tests {
		_, _, err := parsed(t, nil, tt.args...)
		if code(err) != 2 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want usage with %q", tt.args, err, tt.want)
		}
	}
	if _, _, err := parsed(t, nil, "--lock=a//b"); !errors.Is(err, zklock.ErrInvalidName) || code(err) != 2 {
		t.Errorf("an invalid name of a further lock: %v", err)
	}
}

func TestClaimAccepts(t *testing.T) {
	tests := []struct {
		args  []string
		mode  zklock.Mode
		title string
	}{
		{nil, zklock.Exclusive, "demo"},
		{[]string{"--shared"}, zklock.Shared, "demo"},
		{[]string{"--write"}, zklock.Exclusive, "demo"},
		{[]string{"--write", "--shared=false"}, zklock.Exclusive, "demo"},
		{[]string{"--node"}, zklock.Exclusive, "demo"},
		{[]string{"--count=3"}, zklock.Permit, "demo"},
		{[]string{"--count=3", "--permits=3"}, zklock.Permit, "demo"},
		{[]string{"--shared", "--lock=b", "--lock=c"}, zklock.Shared, "demo + b + c"},
		{[]string{"--in-order", "--lock=b", "--lock=c", "--lock=d"}, zklock.Exclusive, "demo + b + 2 more"},
		{[]string{"--shared", "--beside-foreign", "--lock-delay=2"}, zklock.Shared, "demo"},
		{[]string{"--shared", "--layout=custom:exclusive=-W-,shared=-R-"}, zklock.Shared, "demo"},
		{[]string{"--layout=latch"}, zklock.Exclusive, "demo"},
	}
	for _, tt := range tests {
		k, _, err := parsed(t, nil, tt.args...)
		if err != nil || k.mode() != tt.mode || k.title() != tt.title {
			t.Errorf("%q: %s of %s, %v; want %s of %s", tt.args, k.mode(), k.title(), err, tt.mode, tt.title)
		}
	}
}

// What the environment says for a fleet does not make a command line wrong that
// has no use for it; what kind of lock is meant is never read from there.
func TestClaimEnvironment(t *testing.T) {
	env := map[string]string{
		"ZKLOCK_LOCK_DELAY": "5", "ZKLOCK_LAYOUT": "mixed", "ZKLOCK_BESIDE_FOREIGN": "true",
		"ZKLOCK_SHARED": "true", "ZKLOCK_COUNT": "7", "ZKLOCK_PERMITS": "3", "ZKLOCK_LOCK": "other", "ZKLOCK_NODE": "true",
	}
	tests := []struct {
		args   []string
		delay  time.Duration
		layout string
		beside bool
	}{
		{nil, 5 * time.Second, "mixed", false},
		{[]string{"--shared"}, 5 * time.Second, "mixed", true},
		{[]string{"--shared", "--lock-delay=0", "--layout=curator", "--beside-foreign=false"}, 0, "curator", false},
		{[]string{"--node"}, 0, "", false},
		{[]string{"--count=2"}, 0, "", false},
		{[]string{"--layout=custom:exclusive=-W-"}, 0, "custom:exclusive=-W-", false},
	}
	for _, tt := range tests {
		k, _, err := parsed(t, env, tt.args...)
		if err != nil || k.delay.D != tt.delay || k.layout.String() != tt.layout || k.beside != tt.beside || len(k.paths) != 1 {
			t.Errorf("%q: delay %v, layout %q, beside %v, %v; want %v %q %v", tt.args, k.delay.D, k.layout.String(), k.beside, err, tt.delay, tt.layout, tt.beside)
		}
	}
	if _, _, err := parsed(t, map[string]string{"ZKLOCK_LAYOUT": "zoo"}); code(err) != 2 || !strings.Contains(err.Error(), "ZKLOCK_LAYOUT") {
		t.Errorf("nonsense in the environment: %v", err)
	}
}

// A fleet's layout of its own does not turn the fleet's lock delay into an error.
func TestClaimEnvironmentOfACustomLayout(t *testing.T) {
	env := map[string]string{"ZKLOCK_LOCK_DELAY": "5", "ZKLOCK_LAYOUT": "custom:exclusive=-W-"}
	k, _, err := parsed(t, env)
	if err != nil || k.delay.D != 0 || !k.layout.custom() {
		t.Errorf("delay %v, layout %q, %v", k.delay.D, k.layout.String(), err)
	}
	if k, _, err = parsed(t, env, "--layout=curator"); err != nil || k.delay.D != 5*time.Second {
		t.Errorf("with Curator's layout: delay %v, %v", k.delay.D, err)
	}
}

// The bounds that are refused without a server are those of the library.
func TestClaimBounds(t *testing.T) {
	_, _, _, c := lookers(t)
	semaphore := func(n, permits int) error {
		_, err := c.Semaphore("s", n).Permits(permits).Inspect(t.Context())
		return err
	}
	all := func(n int) error {
		locks := make([]*zklock.Lock, n)
		for i := range locks {
			locks[i] = c.Mutex(fmt.Sprintf("m%d", i))
		}
		_, err := zklock.All(locks...).Inspect(t.Context())
		return err
	}
	for what, err := range map[string]error{"permits": semaphore(maxCount, maxTaken), "locks": all(maxLocks)} {
		if err != nil {
			t.Errorf("%s at the bound: %v", what, err)
		}
	}
	for what, err := range map[string]error{"a count": semaphore(maxCount+1, 1), "permits": semaphore(maxCount, maxTaken+1), "locks": all(maxLocks + 1)} {
		if !errors.Is(err, zklock.ErrInvalidLock) {
			t.Errorf("%s beyond the bound: %v", what, err)
		}
	}
}

func TestClaimLimit(t *testing.T) {
	tests := []struct {
		args []string
		want time.Duration
		late string
	}{
		{nil, 0, "demo was not free within 3s, on x:1"},
		{[]string{"-w", "3"}, 3 * time.Second, "demo was not free within 3s, on x:1"},
		{[]string{"--lock=b"}, time.Minute, "see --in-order"},
		{[]string{"--lock=b", "-w", "2h"}, 2 * time.Hour, "demo + b were not free together within 3s, on x:1; "},
	}
	for _, tt := range tests {
		k, s, err := parsed(t, nil, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.limit(s); got != tt.want {
			t.Errorf("%q waits %v, want %v", tt.args, got, tt.want)
		}
		if got := k.late(3*time.Second, ", on x:1").Error(); !strings.Contains(got, tt.late) {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.late)
		}
	}
	k, _, err := parsed(t, nil, "--lock=b", "--in-order")
	if err != nil || strings.Contains(k.late(1, "").Error(), "--in-order") {
		t.Errorf("one who takes them in order is told to: %v", k.late(1, ""))
	}
}

func TestClaimLocks(t *testing.T) {
	k, _, err := parsed(t, nil, "--lock=/b")
	want := []held{{"demo", "/zklock/demo", 0}, {"/b", "/b", 0}}
	if got := k.locks(nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got := tokenLines(want); got != "0 /zklock/demo\n0 /b" {
		t.Errorf("lines %q", got)
	}
}

func TestAdvise(t *testing.T) {
	k := &claim{names: []string{"demo"}, paths: []string{"/zklock/demo"}}
	other := errors.New("other")
	for err, want := range map[error]string{
		zklock.ErrForeignMutex: "--beside-foreign",
		zklock.ErrPermits:      "zklock show demo",
		other:                  "other",
	} {
		got := advise(k, &zklock.Error{Op: "acquire", Err: err})
		if !strings.Contains(got.Error(), want) || code(got) != 125 {
			t.Errorf("%v: %v with code %d, want %q and 125", err, got, code(got), want)
		}
	}
	if got := code(&zklock.Error{Op: "acquire", Err: zklock.ErrInvalidLock}); got != 2 {
		t.Errorf("an impossible lock exits with %d, want 2", got)
	}
}
