package kinds

import "testing"

// TestFound are plays that once went wrong.
func TestFound(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     Kind
		commands []Command
	}{
		// One holds two of three permits, one waits for two and keeps the gate. The
		// answer to the try's second listing, that of the permits, is lost: the try
		// must not become a waiter.
		{"a try at a gate", semaphore(), []Command{
			{Do: "acquire", How: 1}, {Do: "acquire", How: 1}, {Do: "drop", How: 3, Some: 1}, {Do: "try"},
		}},
		// The answer to the try's create is lost. What this left has a name like any
		// other's, and only its data tell that it is the caller's own.
		{"a try among names without an id", recipe(), []Command{{Do: "drop", Who: 1, Some: 1}, {Do: "try"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Play(t, c.kind, c.commands); err != nil {
				t.Error(err)
			}
		})
	}
}
