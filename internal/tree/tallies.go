package tree

// Tallies are how often something happened since the Tree was made or restored.
// They are for whoever watches the server: no decision rests on them, and they
// are no part of the durable state.
type Tallies struct {
	Opened       int64 // sessions made, resumed ones not among them
	Expired      int64 // sessions that ended because their time was over
	AuthFailures int64 // connections closed for who they were: credentials refused, or a demanded identity missing

	// Requests refused for want of room, by the field of Config that says so.
	RefusedNodes, RefusedData, RefusedWatches, RefusedSessions, RefusedReplies int64
}

// Tallies returns what was counted.
func (t *Tree) Tallies() Tallies { return t.tallies }
