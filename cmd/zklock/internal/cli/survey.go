package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// What a lock on the servers is.
const (
	shapeQueue     = "queue" // mutexes, readers, writers
	shapeSemaphore = "semaphore"
	shapeNode      = "node" // one znode
)

// survey is what was read of one lock.
type survey struct {
	path    string
	shape   string
	permits int // that a semaphore has; 0 if nobody wrote it
	entries []zklock.Entry
	// vanished counts the holders and waiters with a lock delay that left without
	// a release. Only show looks for them.
	vanished int
}

// look reads one lock, of whatever kind.
func look(ctx context.Context, z *zk.Client, c *zklock.Client, path string) (survey, error) {
	s := survey{path: path, shape: shapeQueue}
	entries, err := c.Inspect(ctx, path)
	if err != nil {
		return s, err
	}
	s.entries = entries
	for _, e := range entries {
		switch {
		case e.Mode == zklock.Permit:
			s.shape = shapeSemaphore
		case e.Node == e.Path:
			s.shape = shapeNode
		}
	}
	if s.shape == shapeSemaphore || len(s.contenders()) == 0 {
		err = s.readPermits(ctx, z)
	}
	return s, err
}

// lookFor is look for a lock that was named: where c's layout has several locks in
// one parent, and has none of that name, it may be of a kind that knows no layout,
// as a semaphore, or another program's. It returns the client that knows it.
func lookFor(ctx context.Context, z *zk.Client, c, plain *zklock.Client, layout layoutValue, path string) (survey, *zklock.Client, error) {
	s, err := look(ctx, z, c, path)
	if err != nil || !layout.InParent || len(s.entries) > 0 {
		return s, c, err
	}
	s, err = look(ctx, z, plain, path)
	return s, plain, err
}

// readPermits reads how many permits there are, if this is a semaphore.
func (s *survey) readPermits(ctx context.Context, z *zk.Client) error {
	data, _, err := z.Get(ctx, s.path+"/leases")
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if n, bad := strconv.Atoi(string(data)); bad == nil && n > 0 {
		s.shape, s.permits = shapeSemaphore, n
	}
	return err
}

// records lists the records of lock delays beside the lock at path.
func records(ctx context.Context, z *zk.Client, path string) ([]string, error) {
	names, _, err := z.Children(ctx, path+heldSuffix)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// readRecords counts the records of lock delays whose entries are gone. before
// are those that were there before the entries were read: who comes or goes
// meanwhile has a record in one of the two listings only, and did not vanish.
func (s *survey) readRecords(ctx context.Context, z *zk.Client, before []string) error {
	after, err := records(ctx, z, s.path)
	made := map[string]bool{} // by whom the entries are, as their records are named
	for _, e := range s.entries {
		made[e.Name[:max(0, len(e.Name)-sequenceDigits)]] = true
	}
	for _, record := range after {
		if slices.Contains(before, record) && !made[record] {
			s.vanished++
		}
	}
	return err
}

// sequenceDigits is how many digits the servers append to a sequential znode's name.
const sequenceDigits = 10

// contenders are the entries without the strays.
func (s *survey) contenders() []zklock.Entry {
	var all []zklock.Entry
	for _, e := range s.entries {
		if e.Mode != zklock.Stray {
			all = append(all, e)
		}
	}
	return all
}

// holders are the entries that hold.
func (s *survey) holders() []zklock.Entry {
	var all []zklock.Entry
	for _, e := range s.entries {
		if e.Holder {
			all = append(all, e)
		}
	}
	return all
}

// kazooPermits counts what look like permits of kazoo's Semaphore, which to all
// others are strays.
func (s *survey) kazooPermits() int {
	n := 0
	for _, e := range s.entries {
		if e.Mode == zklock.Stray && e.Session != 0 && len(e.Name) == 32 && strings.Trim(e.Name, "0123456789abcdef") == "" {
			n++
		}
	}
	return n
}

// waiting counts those who wait.
func (s *survey) waiting() int {
	n := 0
	all := s.contenders()
	for i, e := range all {
		if !e.Holder && (i == 0 || !together(all[i-1], e)) {
			n++
		}
	}
	return n
}

// together reports whether one attempt made both entries of a queue, as in the
// mixed layout. They are next to each other.
func together(a, b zklock.Entry) bool {
	return a.Session == b.Session && a.Session != 0 && a.Token == b.Token && a.Token != 0
}

// once leaves the first entry of each attempt: a hold of several permits, or in
// the mixed layout, has several.
func once(entries []zklock.Entry) []zklock.Entry {
	type attempt struct{ session, token int64 }
	seen := map[attempt]bool{}
	var first []zklock.Entry
	for _, e := range entries {
		a := attempt{e.Session, e.Token}
		if e.Session == 0 || !seen[a] {
			first = append(first, e)
		}
		seen[a] = true
	}
	return first
}
