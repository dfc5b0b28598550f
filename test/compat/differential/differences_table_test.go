package differential

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// Difference is a deliberate difference between the embedded server and ZooKeeper.
type Difference struct {
	Name   string
	Reason string
	// Documented is a text in the package documentation of internal/tree.
	Documented string
	// Excuses reports whether the results of a step, Java's first, have this difference and no
	// other. Nil means that scripts avoid it.
	Excuses func(st Step, java, ours []string) bool
	// Ends means that the servers' states differ afterwards, so the script ends.
	Ends bool
}

// Differences returns all differences that a client may see.
func Differences() []Difference {
	return []Difference{
		{
			Name:       "wrong password",
			Reason:     "an attacker who knows a session's id could disconnect its client repeatedly",
			Documented: "A client with a wrong password does not close",
			Excuses: func(st Step, java, ours []string) bool {
				// Java closes the connection of the session's client. The embedded server keeps
				// it until the client reconnects.
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
			Ends: true, // the embedded server sets the watch of a hidden event
		},
		{
			Name:       "expiry by the tick",
			Reason:     "a waiter waits no longer than the session timeout of the holder",
			Documented: "Sessions expire when their timeout is over",
		},
		{
			Name:       "timeouts survive",
			Reason:     "clients rely on the last timeout from the server",
			Documented: "A renegotiated session timeout survives a restart",
		},
		{
			Name:       "commands among servers",
			Reason:     "only servers send them, and one of them would let any client delete containers",
			Documented: "deleteContainer and createSession",
		},
		{
			Name:       "createTTL without a time",
			Reason:     "outside a multi, it ends ZooKeeper's server",
			Documented: "A createTTL with a mode without a TTL is a bad argument",
		},
		{
			Name:       "invalid quotas",
			Reason:     "they end ZooKeeper's server",
			Documented: "The znodes of a quota contain only valid numbers",
		},
		{
			Name:       "quotas of closed nodes",
			Reason:     "a quota shows the usage below a node, and may reject creates there",
			Documented: "A quota needs ADMIN on the root of its subtree",
			Excuses: func(st Step, java, ours []string) bool {
				denied := func(lines []string) int { return strings.Count(strings.Join(lines, "\n"), "NoAuth") }
				return st.changesQuota() && denied(ours) > denied(java)
			},
			Ends: true,
		},
		{
			Name:       "usage of closed nodes",
			Reason:     "it shows the usage below a node",
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
			Reason:     "a change updates counts in every node above it, which delays other clients",
			Documented: "A path has at most 512 names",
		},
		{
			Name:       "long multis",
			Reason:     "a multi is applied in one step, which delays other clients",
			Documented: "A multi has at most 5,000 operations",
		},
		{
			Name:       "long ends of sessions",
			Reason:     "the end of a session with a million nodes must not delay other clients",
			Documented: "If a session has more nodes, or watches on them, than one call may process, its end takes several transactions",
		},
		{
			Name:       "strict messages",
			Reason:     "no client sends other messages, and a decoded message encodes to the same bytes",
			Documented: "Messages are decoded strictly",
		},
		{
			Name:       "texts as bytes",
			Reason:     "a path has the bytes of its client, without replacements by a decoder",
			Documented: "Texts are kept as the bytes that arrived",
		},
		{
			Name:       "replies in order",
			Reason:     "clients match replies with requests by their order",
			Documented: "Answers never overtake each other",
		},
		{
			Name:       "pipelined requests",
			Reason:     "a client must not see a change that failed, or use a permission that was removed",
			Documented: "A request sees exactly the effects of the request before it",
		},
		{
			Name:       "order of names",
			Reason:     "an order that is the same in every run makes histories repeatable",
			Documented: "Children are listed in the order of their creation",
		},
	}
}

// sameWithoutHidden reports whether both results are equal without the events that
// [side.markHidden] has marked.
func sameWithoutHidden(java, ours []string) bool {
	return slices.Equal(slices.DeleteFunc(slices.Clone(java), func(l string) bool { return strings.HasSuffix(l, hiddenMark) }), ours)
}

// without removes the first line that begins with a text.
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

// excuse returns the deliberate difference between the results of a step, or nil.
func excuse(st Step, lines [2][]string) *Difference {
	for _, d := range Differences() {
		if d.Excuses != nil && d.Excuses(st, lines[0], lines[1]) {
			return &d
		}
	}
	return nil
}
