package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
)

// allTimeout bounds the wait for several locks where -w does not: somebody who
// takes one of them while holding another can be in a deadlock with us.
const allTimeout = time.Minute

// Bounds of semaphores: the library's own, known here so that they need no server.
const (
	maxCount = 1 << 20
	maxTaken = 1024 // permits at once
)

// maxLocks is how many locks the library takes in one transaction.
const maxLocks = 256

// claim is what a command line wants to hold: which locks, of which kind. What
// kind of lock a name stands for is never taken from the environment, which a
// nested zklock would inherit.
type claim struct {
	shared, write, node bool
	permits, count      int
	more                []string
	inOrder             bool
	delay               span.Value
	layout              layoutValue
	beside              bool
	acl                 aclValue

	names, paths []string // of the locks, as given; check settles them
}

// flags adds the kinds of locks.
func (k *claim) flags(f *pflag.FlagSet) {
	f.BoolVar(&k.shared, "shared", false, "acquire a shared lock, for readers")
	f.BoolVar(&k.write, "write", false, "acquire the write lock of a read-write lock")
	f.IntVar(&k.count, "count", 0, "acquire a semaphore that has `N` permits")
	f.IntVar(&k.permits, "permits", 1, "with --count: acquire `K` permits")
	f.BoolVar(&k.node, "node", false, "use one ephemeral znode, without a queue")
	f.StringArrayVar(&k.more, "lock", nil, "also acquire `NAME`, all or none; repeatable")
	f.BoolVar(&k.inOrder, "in-order", false, "acquire several locks one by one in path order")
	f.Var(&k.delay, "lock-delay", "wait this long after a holder crashed")
	f.Var(&k.acl, "acl", "`ACL` of new znodes, such as open or creator")
	k.layout.add(f)
	f.BoolVar(&k.beside, "beside-foreign", false, "for --shared: ignore Curator and kazoo mutexes")
}

// given reports whether a flag was set, and not to false.
func given(f *pflag.FlagSet, name string) bool {
	return f.Changed(name) && f.Lookup(name).Value.String() != "false"
}

// refused are flags that make no sense together, and why.
func refused() [][3]string {
	const pick = "give one of them"
	return [][3]string{
		{"shared", "write", "a reader shares the lock and a writer does not; " + pick},
		{"count", "shared", "a semaphore has permits and no readers; " + pick},
		{"count", "write", "a semaphore has permits and no writer; " + pick},
		{"count", "node", "the lock that is one znode has one holder; " + pick},
		{"count", "lock-delay", "a semaphore has no lock delay; leave that out"},
		{"count", "layout", "a semaphore's znodes have the names that Curator's have, and no others; leave the layout out"},
		{"node", "shared", "the lock that is one znode has no readers; " + pick},
		{"node", "write", "the lock that is one znode is exclusive anyway; " + pick},
		{"node", "lock", "the lock that is one znode can't be taken together with others; use zklock run inside zklock run"},
		{"node", "lock-delay", "the lock that is one znode has no lock delay; leave that out"},
		{"node", "layout", "the lock that is one znode has its own name and no other; leave the layout out"},
	}
}

// check refuses what makes no sense, before any I/O, and settles the locks'
// paths. first is the lock that was named without a flag.
func (k *claim) check(f *pflag.FlagSet, first string) error {
	if err := k.settle(first); err != nil {
		return err
	}
	for _, r := range refused() {
		if given(f, r[0]) && given(f, r[1]) {
			return usage("--%s and --%s: %s", r[0], r[1], r[2])
		}
	}
	switch {
	case f.Changed("permits") && !f.Changed("count"):
		return usage("--permits %d: of how many? say how many permits the semaphore has: --count N", k.permits)
	case f.Changed("count") && (k.count < 1 || k.count > maxCount):
		return usage("--count is %d: a semaphore has at least 1 permit, and at most %d", k.count, maxCount)
	case k.permits < 1:
		return usage("--permits is %d: take at least 1", k.permits)
	case k.count > 0 && k.permits > k.count:
		return usage("--permits is %d, and --count says that there are %d: take at most so many", k.permits, k.count)
	case k.permits > maxTaken:
		return usage("--permits is %d: at most %d can be taken at once", k.permits, maxTaken)
	case k.inOrder && len(k.names) == 1:
		return usage("--in-order is about several locks; name the others with --lock")
	case k.beside && !k.shared:
		return usage("--beside-foreign is about readers; give it with --shared")
	case k.delay.D < 0:
		return usage("--lock-delay is %v: give a time from 0 on", k.delay.D)
	case k.delay.D > 0 && (k.layout.custom() || k.layout.kind == layoutWrite):
		return usage("--lock-delay needs names that tell one attempt from another, and the layout %s has none; leave one of them out", k.layout.kind)
	case k.shared && !k.layout.readers():
		return usage("--shared: there are no readers in the layout %q", k.layout.String())
	case k.write && (k.layout.kind == layoutLatch || k.layout.kind == layoutWrite):
		return usage("--write: the layout %s has no writers; leave --write out", k.layout.kind)
	}
	return nil
}

// settle finds the paths of all locks.
func (k *claim) settle(first string) error {
	k.names = append([]string{first}, k.more...)
	k.paths = nil
	if len(k.names) > maxLocks {
		return usage("--lock: %d locks are more than the %d that can be taken together", len(k.names), maxLocks)
	}
	for _, name := range k.names {
		path, err := zklock.PathOf(name)
		if err != nil {
			return err
		}
		if slices.Contains(k.paths, path) {
			return usage("--lock: %s is named twice, and would wait for itself; name every lock once", path)
		}
		k.paths = append(k.paths, path)
	}
	return nil
}

// mode is how the locks are held.
func (k *claim) mode() zklock.Mode {
	switch {
	case k.count > 0:
		return zklock.Permit
	case k.shared:
		return zklock.Shared
	}
	return zklock.Exclusive
}

// title names the locks for people.
func (k *claim) title() string {
	const most = 3
	n, more := len(k.names), ""
	if n > most {
		n, more = most-1, fmt.Sprintf(" + %d more", n-most+1)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = legible.Name(k.names[i])
	}
	return strings.Join(names, " + ") + more
}

// options adds what the locks need to a client's options.
func (k *claim) options(o zklock.Options) zklock.Options {
	o.Layout, o.LockDelay, o.SharedBesideForeign = k.layout.Layout, k.delay.D, k.beside
	o.ACL = k.acl.list
	return o
}

// lock is all of it as one lock.
func (k *claim) lock(c *zklock.Client) *zklock.Lock {
	locks := make([]*zklock.Lock, len(k.paths))
	for i, path := range k.paths {
		locks[i] = k.one(c, path)
	}
	if len(locks) == 1 {
		return locks[0]
	}
	all := zklock.All(locks...)
	if k.inOrder {
		all = all.InOrder()
	}
	return all
}

// one is the lock at path.
func (k *claim) one(c *zklock.Client, path string) *zklock.Lock {
	switch {
	case k.count > 0:
		return c.Semaphore(path, k.count).Permits(k.permits)
	case k.node:
		return c.NodeLock(path)
	case k.shared:
		return c.RWMutex(path).Reader()
	case k.write:
		return c.RWMutex(path).Writer()
	}
	return c.Mutex(path)
}

// limit is how long to wait for the locks; 0 is for ever. s says so, but for
// several locks there is always a limit.
func (k *claim) limit(s *settings) time.Duration {
	if s.wait.D == 0 && len(k.paths) > 1 {
		return allTimeout
	}
	return s.wait.D
}

// taken is why the locks were not had without waiting; on says where.
func (k *claim) taken(on string) error {
	if len(k.paths) == 1 {
		return fmt.Errorf("%s is held by another%s", k.title(), on)
	}
	return fmt.Errorf("%s are not all free%s", k.title(), on)
}

// late is why the locks were not had in time; on says where.
func (k *claim) late(limit time.Duration, on string) error {
	if len(k.paths) == 1 {
		return fmt.Errorf("%s was not free within %s%s", k.title(), span.Short(limit), on)
	}
	text := fmt.Sprintf("%s were not free together within %s%s; -w sets another limit", k.title(), span.Short(limit), on)
	if !k.inOrder {
		text += "; where others take these locks one by one, it can be a deadlock: see --in-order"
	}
	return errors.New(text)
}

// held is one of the locks that a hold has.
type held struct {
	Lock  string `json:"lock"`
	Path  string `json:"path"`
	Token int64  `json:"token,omitempty"` // 0 while it is not held
}

// locks lists the locks, with their tokens if there is a hold.
func (k *claim) locks(hold *zklock.Hold) []held {
	all := make([]held, len(k.paths))
	for i, path := range k.paths {
		all[i] = held{Lock: k.names[i], Path: path}
		if hold != nil {
			all[i].Token = hold.TokenOf(path)
		}
	}
	return all
}
