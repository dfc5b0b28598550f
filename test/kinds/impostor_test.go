package kinds

import (
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
)

// impostors are locks that are less than they claim to be.
func impostors() []Kind {
	two := mutex()
	two.Name, two.Ways = "two-mutexes-as-one", 2
	two.Ask = func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
		return c.Mutex([]string{path, path[:len(path)-1] + "y"}[n]), []history.Claim{exclusive(path)}
	}
	return []Kind{two}
}

// TestPlaysBite: a lock that is none is unlike the model.
func TestPlaysBite(t *testing.T) {
	for _, kind := range impostors() {
		t.Run(kind.Name, func(t *testing.T) {
			var commands []Command
			for i := range 8 {
				commands = append(commands, Command{Do: "acquire", Who: i, How: i})
			}
			if err, _ := Play(t, kind, commands); err == nil {
				t.Error("nothing was found")
			}
		})
	}
}
