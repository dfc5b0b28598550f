package kinds

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zklock/zklock/test/history"
)

// commands draws what is done in a play.
func commands(t *rapid.T) []Command {
	word := rapid.SampledFrom(Words())
	n := rapid.IntRange(0, 23)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Command {
		return Command{word.Draw(t, "do"), n.Draw(t, "who"), n.Draw(t, "how"), n.Draw(t, "some")}
	}), 15, 60).Draw(t, "commands")
}

// TestPlays: after each command exactly those hold that the model says, whatever
// is done to the network in between, and nothing is left in the end.
func TestPlays(t *testing.T) {
	t.Parallel()
	for _, kind := range All() {
		if kind.Delayed {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			var sum history.Floor
			rapid.Check(t, func(rt *rapid.T) {
				h, err := Play(t, kind, commands(rt))
				if err != nil {
					rt.Fatal(err)
				}
				for _, m := range kind.Models {
					r := history.Check(h, history.Rules{Model: m, Linger: time.Second, Kept: true})
					if len(r.Violations) > 0 {
						rt.Fatalf("%s: %v", m.Name, r.Violations)
					}
					add(&sum, r.Done)
				}
			})
			t.Logf("%+v", sum)
			if sum.Acquired < 100 || sum.Waited < 50 || sum.Refused < 30 || sum.Lost < 5 ||
				kind.Again != nil && kind.Name != "mutex" && sum.Reentered < 10 || kind.Writer != nil && sum.Lowered < 5 {
				t.Error("too little happened")
			}
		})
	}
}

// add sums what happened.
func add(sum *history.Floor, f history.Floor) {
	sum.Acquired += f.Acquired
	sum.Waited += f.Waited
	sum.Refused += f.Refused
	sum.Cancelled += f.Cancelled
	sum.Lost += f.Lost
	sum.Unknown += f.Unknown
	sum.Lowered += f.Lowered
	sum.Reentered += f.Reentered
	sum.Expired += f.Expired
}
