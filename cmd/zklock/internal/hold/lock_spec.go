package hold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/legible"
)

// Limits of an acquire. They are the library's own limits, checked here before the command
// connects.
const (
	maxAcquired = 1024 // permits
	maxLocks    = 256
)

// maxPaths limits the bytes of all paths together. ZKLOCK_LOCKS has all of them and the
// tokens, and Linux accepts at most 128 KiB in one variable of a command.
const maxPaths = 100 << 10

// lockSpec says which locks a command line acquires, and of which kind. The kind never
// comes from the environment, because a nested zklock would inherit it.
type lockSpec struct {
	shared, write, node bool
	permits, count      int
	resizable           bool     // a semaphore with the size that the servers store
	more                []string // names of the locks after the first
	inOrder             bool
	delay               cli.Duration
	layout              cli.LayoutValue
	foreignMutex        bool
	acl                 cli.ACLValue
	value               string

	names, paths []string // of all locks, as given; check sets them
}

// flags adds the flags for the kind of lock.
func (s *lockSpec) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.shared, "shared", false, "acquire a shared lock, for readers")
	f.BoolVar(&s.write, "write", false, "acquire the write lock of a read-write lock")
	f.IntVar(&s.count, "count", 0, "acquire a semaphore that has `N` permits")
	f.BoolVar(&s.resizable, "resizable", false, "use a semaphore whose size zklock resize sets")
	f.IntVar(&s.permits, "permits", 1, "acquire `K` permits of the semaphore")
	f.BoolVar(&s.node, "node", false, "use one ephemeral znode, without a queue")
	f.StringArrayVar(&s.more, "lock", nil, "also acquire `NAME`, all or none; repeatable")
	f.BoolVar(&s.inOrder, "in-order", false, "acquire several locks one by one in path order")
	f.Var(&s.delay, "lock-delay", "after a holder crashes, wait this long")
	f.StringVar(&s.value, "value", "", "publish `TEXT`, such as an address")
	s.layout.Add(f)
	f.BoolVar(&s.foreignMutex, "allow-foreign-mutex", false, "for --shared: ignore Curator and kazoo mutexes")
}

// addLockFlags adds the flags that run and lock share.
func addLockFlags(a *cli.App, c *cobra.Command, spec *lockSpec, revoke *onRevoke) {
	a.ServerFlags(c)
	a.Settings.HoldFlags(c.Flags())
	a.Settings.WaitFlags(c.Flags())
	spec.flags(c.Flags())
	cli.CompleteFlagWords(c, "layout", cli.LayoutNames())
	spec.acl.Flag(c)
	_ = c.RegisterFlagCompletionFunc("lock", a.CompleteLockFlag) // the flag exists
	cli.IgnoreCurrentContext(c)
	revoke.flag(c)
}

// incompatibleFlags returns rows of flags, another flag that none of them can be given with,
// and why.
func incompatibleFlags() [][3]string {
	const pick = "give one of them"
	return [][3]string{
		{"shared", "write", "a reader shares the lock and a writer does not; " + pick},
		{"resizable", "count", "the servers store the size of a resizable semaphore; omit --count"},
		{"count resizable", "shared", "a semaphore has permits and no readers; " + pick},
		{"count resizable", "write", "a semaphore has permits and no writer; " + pick},
		{"count resizable", "node", "a node lock has one holder; " + pick},
		{"count resizable", "lock-delay", "a semaphore has no lock-delay; omit --lock-delay"},
		{"count resizable", "layout", "a semaphore always has Curator's layout; omit --layout"},
		{"count resizable", "value", "a semaphore has no value; omit --value"},
		{"lock", "value", "several locks have no common value; omit --value"},
		{"node", "shared", "a node lock has no readers; " + pick},
		{"node", "write", "a node lock is always exclusive; " + pick},
		{"node", "lock", "a node lock cannot be acquired together with other locks; use zklock run inside zklock run"},
		{"node", "lock-delay", "a node lock has no lock-delay; omit --lock-delay"},
		{"node", "layout", "a node lock has no layout; omit --layout"},
	}
}

// check sets the names and paths of the locks, and returns an error if the flags are
// invalid. It does no I/O. first is the lock that was named without a flag.
func (s *lockSpec) check(f *pflag.FlagSet, first string) error {
	if err := s.setPaths(first); err != nil {
		return err
	}
	for _, pair := range incompatibleFlags() {
		for flag := range strings.FieldsSeq(pair[0]) {
			if cli.Given(f, flag) && cli.Given(f, pair[1]) {
				return cli.UsageError("--%s and --%s: %s", flag, pair[1], pair[2])
			}
		}
	}
	switch {
	case f.Changed("permits") && !f.Changed("count") && !s.resizable:
		return cli.UsageError("--permits %d: give the number of permits that the semaphore has: --count N, or --resizable", s.permits)
	case f.Changed("count") && (s.count < 1 || s.count > cli.MaxPermits):
		return cli.UsageError("--count is %d: a semaphore has at least 1 permit, and at most %d", s.count, cli.MaxPermits)
	case s.permits < 1:
		return cli.UsageError("--permits is %d: give at least 1", s.permits)
	case s.count > 0 && s.permits > s.count:
		return cli.UsageError("--permits is %d, more than the %d permits of --count", s.permits, s.count)
	case s.permits > maxAcquired:
		return cli.UsageError("--permits is %d: at most %d can be acquired at once", s.permits, maxAcquired)
	case len(s.value) > zklock.MaxValue:
		return cli.UsageError("--value has %d bytes: give at most %d", len(s.value), zklock.MaxValue)
	case s.inOrder && len(s.names) == 1:
		return cli.UsageError("--in-order applies to several locks; name the others with --lock")
	case s.foreignMutex && !s.shared:
		return cli.UsageError("--allow-foreign-mutex applies to shared locks; give it with --shared")
	case s.delay.D < 0:
		return cli.UsageError("--lock-delay is %v: give a time from 0 on", s.delay.D)
	case s.delay.D > 0 && (s.layout.Custom() || s.layout.Kind == cli.LayoutWrite):
		return cli.UsageError("--lock-delay needs entry names that identify the acquire, and the layout %s has none; omit --lock-delay or --layout", s.layout.Kind)
	case s.shared && !s.layout.Readers():
		return cli.UsageError("--shared: the layout %q has no readers; omit --shared or --layout", s.layout.String())
	case s.write && (s.layout.Kind == cli.LayoutLatch || s.layout.Kind == cli.LayoutWrite):
		return cli.UsageError("--write: the layout %s has no writers; omit --write or --layout", s.layout.Kind)
	}
	return nil
}

// setPaths validates the names and sets the paths of all locks.
func (s *lockSpec) setPaths(first string) error {
	s.names = append([]string{first}, s.more...)
	s.paths = nil
	if len(s.names) > maxLocks {
		return cli.UsageError("--lock: at most %d locks can be acquired together, not %d", maxLocks, len(s.names))
	}
	total := 0
	for _, name := range s.names {
		path, err := zklock.PathOf(name)
		if err != nil {
			return err
		}
		if total += len(path); total > maxPaths {
			return cli.UsageError("--lock: the paths of the locks have more than %d bytes together; give shorter names, or fewer", maxPaths)
		}
		if slices.Contains(s.paths, path) {
			return cli.UsageError("--lock: %s is named twice and would wait for itself; name every lock once", path)
		}
		s.paths = append(s.paths, path)
	}
	return nil
}

// mode returns how the locks are held.
func (s *lockSpec) mode() zklock.Mode {
	switch {
	case s.count > 0 || s.resizable:
		return zklock.Permit
	case s.shared:
		return zklock.Shared
	}
	return zklock.Exclusive
}

// title returns the names of the locks for messages.
func (s *lockSpec) title() string {
	const most = 3
	n, more := len(s.names), ""
	if n > most {
		n, more = most-1, fmt.Sprintf(" + %d more", n-most+1)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = legible.Name(s.names[i])
	}
	return strings.Join(names, " + ") + more
}

// options adds the options that the flags set.
func (s *lockSpec) options(o zklock.Options) zklock.Options {
	o.Layout, o.LockDelay, o.AllowForeignMutex = s.layout.Layout, s.delay.D, s.foreignMutex
	o.ACL = s.acl.List
	return o
}

// lockState is one of the locks, as the status line, the environment of the command, and
// the output of zklock lock show it.
type lockState struct {
	Lock  string `json:"lock"`
	Path  string `json:"path"`
	Token int64  `json:"token,omitempty,string"` // 0 while it is not held
}

// states lists the locks, with their tokens if there is a hold.
func (s *lockSpec) states(hold *zklock.Hold) []lockState {
	all := make([]lockState, len(s.paths))
	for i, path := range s.paths {
		all[i] = lockState{Lock: s.names[i], Path: path}
		if hold != nil {
			all[i].Token = hold.TokenOf(path)
		}
	}
	return all
}
