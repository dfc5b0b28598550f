package zktest

// Partition cuts the network: every byte in the given directions stays in flight, also on
// new connections. Without a direction, it cuts both. Clients and servers are not
// notified: clients notice the silence, and the server expires the sessions that are
// silent. Partition adds to an existing partition. Heal ends it.
//
// To cut off one client of several, give that client a [Route] of its own.
func (r *Relay) Partition(ways ...Direction) {
	if len(ways) == 0 {
		ways = []Direction{ToServer, ToClient}
	}
	for _, d := range ways {
		r.Block(d, true)
	}
}

// Heal ends every Partition, Blackhole, and Block. Data in flight then arrives, as after
// a partition that TCP survived.
func (r *Relay) Heal() { r.Blackhole(false) }

// Blackhole begins a Partition of both directions if on is true, and ends it otherwise.
func (r *Relay) Blackhole(on bool) {
	r.Block(ToServer, on)
	r.Block(ToClient, on)
}

// Block begins a Partition of one direction if on is true, and ends it otherwise.
func (r *Relay) Block(d Direction, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked[d] = on
	r.eased.Broadcast()
}

// pass waits while d is blocked, and reports whether l still stands.
func (r *Relay) pass(d Direction, l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.blocked[d] && r.links[l] {
		r.eased.Wait()
	}
	return r.links[l]
}

// wake makes all goroutines that wait for the end of a block check again.
func (r *Relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eased.Broadcast()
}
