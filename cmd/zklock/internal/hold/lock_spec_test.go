package hold

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// parsed returns the spec of the lock demo with these flags and this environment.
func parsed(t *testing.T, env map[string]string, args ...string) (*lockSpec, *cli.Settings, error) {
	t.Helper()
	k, s := &lockSpec{}, &cli.Settings{}
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	s.ConnectionFlags(f)
	s.WaitFlags(f)
	k.flags(f)
	if err := f.Parse(args); err != nil {
		return k, s, err
	}
	err := cli.FromEnvironment(f, func(key string) string { return env[key] })
	if err == nil {
		err = k.check(f, "demo")
	}
	return k, s, err
}

func TestLockSpecRejects(t *testing.T) {
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
		{[]string{"--count=2000", "--permits=1025"}, "at most 1024 can be acquired at once"},
		{slices.Repeat([]string{"--lock=b"}, maxLocks), "at most 256 locks"},
		{longNames(), "more than 102400 bytes together"},
		{[]string{"--permits=2"}, "--count N"},
		{[]string{"--permits=1"}, "--count N"},
		{[]string{"--count=0"}, "at least 1 permit"},
		{[]string{"--count=-3"}, "at least 1 permit"},
		{[]string{"--count=3", "--permits=0"}, "give at least 1"},
		{[]string{"--count=3", "--permits=4"}, "more than the 3 permits"},
		{[]string{"--in-order"}, "name the others with --lock"},
		{[]string{"--allow-foreign-mutex"}, "give it with --shared"},
		{[]string{"--lock-delay=-1"}, "from 0 on"},
		{[]string{"--lock-delay=1", custom}, "the layout custom has none"},
		{[]string{"--shared", custom}, `the layout "custom:exclusive=-W-" has no readers`},
		{[]string{"--shared", "--layout=latch"}, "has no readers"},
		{[]string{"--write", "--layout=latch"}, "has no writers"},
		{[]string{"--shared", "--layout=writelock"}, "has no readers"},
		{[]string{"--write", "--layout=writelock"}, "has no writers"},
		{[]string{"--lock-delay=1", "--layout=writelock"}, "the layout writelock has none"},
		{[]string{"--lock=demo"}, "/zklock/demo is named twice"},
		{[]string{"--lock=/zklock/demo"}, "named twice"},
		{[]string{"--lock=b", "--lock=b"}, "/zklock/b is named twice"},
	}
	for _, tt := range tests {
		_, _, err := parsed(t, nil, tt.args...)
		if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want usage with %q", tt.args, err, tt.want)
		}
	}
	if _, _, err := parsed(t, nil, "--lock=a//b"); !errors.Is(err, zklock.ErrInvalidName) || cli.ExitCode(err) != 2 {
		t.Errorf("an invalid name after --lock: %v", err)
	}
}

func TestLockSpecAccepts(t *testing.T) {
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
		{[]string{"--shared", "--allow-foreign-mutex", "--lock-delay=2"}, zklock.Shared, "demo"},
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

// A variable that does not apply to a command line is ignored, and no variable sets the
// kind of lock.
func TestLockSpecEnvironment(t *testing.T) {
	env := map[string]string{
		"ZKLOCK_LOCK_DELAY": "5", "ZKLOCK_LAYOUT": "mixed", "ZKLOCK_ALLOW_FOREIGN_MUTEX": "true",
		"ZKLOCK_SHARED": "true", "ZKLOCK_COUNT": "7", "ZKLOCK_PERMITS": "3", "ZKLOCK_LOCK": "other", "ZKLOCK_NODE": "true",
	}
	tests := []struct {
		args         []string
		delay        time.Duration
		layout       string
		foreignMutex bool
	}{
		{nil, 5 * time.Second, "mixed", false},
		{[]string{"--shared"}, 5 * time.Second, "mixed", true},
		{[]string{"--shared", "--lock-delay=0", "--layout=curator", "--allow-foreign-mutex=false"}, 0, "curator", false},
		{[]string{"--node"}, 0, "", false},
		{[]string{"--count=2"}, 0, "", false},
		{[]string{"--layout=custom:exclusive=-W-"}, 0, "custom:exclusive=-W-", false},
	}
	for _, tt := range tests {
		k, _, err := parsed(t, env, tt.args...)
		if err != nil || k.delay.D != tt.delay || k.layout.String() != tt.layout || k.foreignMutex != tt.foreignMutex || len(k.paths) != 1 {
			t.Errorf("%q: delay %v, layout %q, foreign mutex %v, %v; want %v %q %v", tt.args, k.delay.D, k.layout.String(), k.foreignMutex, err, tt.delay, tt.layout, tt.foreignMutex)
		}
	}
	if _, _, err := parsed(t, map[string]string{"ZKLOCK_LAYOUT": "zoo"}); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "ZKLOCK_LAYOUT") {
		t.Errorf("an invalid value in the environment: %v", err)
	}
}

// With a custom layout from the environment, the lock-delay from the environment is
// ignored.
func TestLockSpecEnvironmentWithCustomLayout(t *testing.T) {
	env := map[string]string{"ZKLOCK_LOCK_DELAY": "5", "ZKLOCK_LAYOUT": "custom:exclusive=-W-"}
	k, _, err := parsed(t, env)
	if err != nil || k.delay.D != 0 || !k.layout.Custom() {
		t.Errorf("delay %v, layout %q, %v", k.delay.D, k.layout.String(), err)
	}
	if k, _, err = parsed(t, env, "--layout=curator"); err != nil || k.delay.D != 5*time.Second {
		t.Errorf("with Curator's layout: delay %v, %v", k.delay.D, err)
	}
}

// The limits that are checked before the command connects are those of the library.
func TestLockSpecLimitsMatchLibrary(t *testing.T) {
	c, _ := twoClients(t)
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
	for what, err := range map[string]error{"permits": semaphore(cli.MaxPermits, maxAcquired), "locks": all(maxLocks)} {
		if err != nil {
			t.Errorf("%s at the limit: %v", what, err)
		}
	}
	for what, err := range map[string]error{"a count": semaphore(cli.MaxPermits+1, 1), "permits": semaphore(cli.MaxPermits, maxAcquired+1), "locks": all(maxLocks + 1)} {
		if !errors.Is(err, zklock.ErrInvalidLock) {
			t.Errorf("%s beyond the limit: %v", what, err)
		}
	}
}

func TestLockSpecStates(t *testing.T) {
	k, _, err := parsed(t, nil, "--lock=/b")
	want := []lockState{{"demo", "/zklock/demo", 0}, {"/b", "/b", 0}}
	if got := k.states(nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got := tokenLines(want); got != "0 /zklock/demo\n0 /b" {
		t.Errorf("lines %q", got)
	}
}

// longNames returns flags for fewer locks than the limit, whose paths are too long together.
func longNames() (flags []string) {
	for i := range maxLocks - 10 {
		flags = append(flags, fmt.Sprintf("--lock=%d%s", i, strings.Repeat("n", 500)))
	}
	return flags
}
