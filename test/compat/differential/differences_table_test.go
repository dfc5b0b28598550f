package differential

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// Difference is something that the embedded server does otherwise than ZooKeeper,
// on purpose.
type Difference struct {
	Name   string
	Reason string
	// Documented is what the package documentation of internal/tree says of it.
	Documented string
	// Excuses reports whether a step's two accounts, Java's first, differ by this
	// and by nothing else. Nil for what scripts keep away from.
	Excuses func(st Step, java, ours []string) bool
	// Ends says that the servers' states differ afterwards, so that the script ends.
	Ends bool
}

// Differences lists all that may differ in what a client sees.
func Differences() []Difference {
	return []Difference{
		{
			Name:       "wrong password",
			Reason:     "a stranger who knows a session's id could keep its client off for ever",
			Documented: "A client with a wrong password does not close",
			Excuses: func(st Step, java, ours []string) bool {
				// Java has closed the rightful client's connection; here it
				// answers a ping until its owner takes the session up again.
				if st.Kind != KindWrong {
					return false
				}
				return slices.Equal(without(java, "closed"), without(without(ours, "xid -2 "), "former connection closed"))
			},
		},
		{
			Name:       "events of hidden nodes",
			Reason:     "a client must not learn from an event what it may not read",
			Documented: "A recursive watch reports only nodes that the client could list",
			Excuses: func(st Step, java, ours []string) bool {
				return st.Op != wire.OpSetWatches && st.Op != wire.OpSetWatches2 && sameWithoutHidden(java, ours)
			},
		},
		{
			Name:       "events of setWatches",
			Reason:     "a client must not learn from an event what it may not read",
			Documented: "each event, including those of setWatches, is subject to the access control list",
			Excuses: func(st Step, java, ours []string) bool {
				return (st.Op == wire.OpSetWatches || st.Op == wire.OpSetWatches2) && sameWithoutHidden(java, ours)
			},
			Ends: true, // here the watch of a hidden event is set
		},
		{
			Name:       "expiry by the tick",
			Reason:     "whoever waits for a lock waits no longer than the timeout says",
			Documented: "Sessions expire when their timeout is over",
		},
		{
			Name:       "timeouts survive",
			Reason:     "clients count on the timeout that they were told last",
			Documented: "A renegotiated session timeout survives a restart",
		},
		{
			Name:       "commands among servers",
			Reason:     "they are no clients' business, and by one of them anybody could delete containers",
			Documented: "deleteContainer and createSession",
		},
		{
			Name:       "createTTL without a time",
			Reason:     "outside a multi it takes the server down",
			Documented: "A createTTL with a mode without a TTL is a bad argument",
		},
		{
			Name:       "quotas that are none",
			Reason:     "they take the server down",
			Documented: "The znodes of a quota contain only valid numbers",
		},
		{
			Name:       "quotas of closed nodes",
			Reason:     "a quota shows how much is below a node, and may refuse creates there",
			Documented: "A quota needs ADMIN on the root of its subtree",
			Excuses: func(st Step, java, ours []string) bool {
				denied := func(lines []string) int { return strings.Count(strings.Join(lines, "\n"), "NoAuth") }
				return st.changesQuota() && denied(ours) > denied(java)
			},
			Ends: true,
		},
		{
			Name:       "usage of closed nodes",
			Reason:     "it shows how much is below a node",
			Documented: "The usage of a quota needs READ",
			Excuses: func(st Step, java, ours []string) bool {
				denied := func(lines []string) int { return strings.Count(strings.Join(lines, "\n"), "NoAuth") }
				return bytes.Contains(st.Body, []byte("/zookeeper_stats")) && denied(ours) > denied(java)
			},
		},
		{
			Name:       "watches of hidden changes",
			Reason:     "a client must not learn from its watch that a node changed that it may not read",
			Documented: "A change that a client may not see leaves its one-shot watch",
			Excuses: func(st Step, java, ours []string) bool {
				about := st.Op == wire.OpCheckWatches || st.Op == wire.OpRemoveWatches
				if !about || len(java) != 1 || len(ours) != 1 {
					return false
				}
				before, gone := strings.CutSuffix(java[0], wire.ErrNoWatcher.Name())
				return gone && strings.HasPrefix(ours[0], before+wire.ErrOK.Name())
			},
		},
		{
			Name:       "deep paths",
			Reason:     "a change is counted in every node above it, and others wait for that",
			Documented: "A path has at most 512 names",
		},
		{
			Name:       "long multis",
			Reason:     "a multi is applied in one step, and others wait for that",
			Documented: "A multi has at most 5,000 operations",
		},
		{
			Name:       "long ends of sessions",
			Reason:     "one that ends with a million nodes holds up nobody",
			Documented: "If a session has more nodes, or watches on them, than one call may process, its end takes several transactions",
		},
		{
			Name:       "strict messages",
			Reason:     "no client sends such, and what is read strictly is written back the same",
			Documented: "Messages are decoded strictly",
		},
		{
			Name:       "texts as they came",
			Reason:     "a path is what its client wrote, not what a decoder made of it",
			Documented: "Texts are kept as the bytes that arrived",
		},
		{
			Name:       "answers in order",
			Reason:     "clients match answers with requests by their order",
			Documented: "Answers never overtake each other",
		},
		{
			Name:       "pipelined requests",
			Reason:     "what was not done must not be seen, and a permission that was taken away must not be used",
			Documented: "A request sees exactly the effects of the request before it",
		},
		{
			Name:       "order of names",
			Reason:     "an order that is the same in every run makes histories repeatable",
			Documented: "Children are listed in the order of their creation",
		},
	}
}

// sameWithoutHidden reports whether both accounts are equal without the events that
// [side.markHidden] has marked.
func sameWithoutHidden(java, ours []string) bool {
	return slices.Equal(slices.DeleteFunc(slices.Clone(java), func(l string) bool { return strings.HasSuffix(l, hiddenMark) }), ours)
}

// without drops the first line of a step's account that begins with a text.
func without(lines []string, text string) []string {
	i := slices.IndexFunc(lines, func(l string) bool {
		_, l, _ = strings.Cut(l, ": ")
		return strings.HasPrefix(l, text)
	})
	if i < 0 {
		return lines
	}
	return slices.Delete(slices.Clone(lines), i, i+1)
}

// changesQuota reports whether a request of the step names a node of a quota.
func (st Step) changesQuota() bool {
	return bytes.Contains(st.Body, []byte("/zookeeper_")) ||
		slices.ContainsFunc(st.Burst, Step.changesQuota)
}

// excuse returns the deliberate difference that explains a step's two accounts, nil if
// none does.
func excuse(st Step, lines [2][]string) *Difference {
	for _, d := range Differences() {
		if d.Excuses != nil && d.Excuses(st, lines[0], lines[1]) {
			return &d
		}
	}
	return nil
}
