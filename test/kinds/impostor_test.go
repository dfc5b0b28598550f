package kinds

import (
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
)

// impostors are locks that are less than they claim to be.
func impostors() []Kind {
	another := func(path string) string { return path[:len(path)-1] + "y" }
	two := mutex()
	two.Name, two.Ways, two.Again = "two-mutexes-as-one", 2, nil
	two.Ask = func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
		return c.Mutex([]string{path, another(path)}[n]), []history.Claim{exclusive(path)}
	}
	readers := mutex()
	readers.Name, readers.Again = "readers-as-writers", nil
	readers.Ask = func(c *zklock.Client, path string, _ int) (*zklock.Lock, []history.Claim) {
		return c.RWMutex(path).Reader(), []history.Claim{exclusive(path)}
	}
	fewer := semaphore()
	fewer.Name = "fewer-permits-than-said"
	fewer.Ask = func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
		return c.Semaphore(path, 3), []history.Claim{permits(path, n+1, 3)}
	}
	part := multi()
	part.Name, part.Ways = "one-of-two", 2
	part.Ask = func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
		one := []*zklock.Lock{c.Mutex(path), c.Mutex(another(path))}[n]
		return zklock.All(one), []history.Claim{exclusive(path), exclusive(another(path))}
	}
	return []Kind{two, readers, fewer, part}
}

// TestPlaysBite: a lock that is none is unlike the model.
func TestPlaysBite(t *testing.T) {
	for _, kind := range impostors() {
		t.Run(kind.Name, func(t *testing.T) {
			var commands []Command
			for i := range 8 {
				commands = append(commands, Command{Do: "acquire", Who: i, How: i})
			}
			if _, err := Play(t, kind, commands); err == nil {
				t.Error("nothing was found")
			}
		})
	}
}
