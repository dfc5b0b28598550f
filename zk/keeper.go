package zk

// A keeper decides how long room is kept to be used again. While much of it is
// used, making it anew each time would be waste; but a client that was busy once
// and has little to do since should be as small as one that never was.
type keeper struct {
	little int // how often in a row little was used
}

// patience is how often little is used before room is let go: a client that holds
// locks writes and reads a little with each heartbeat.
const patience = 16

// keep reports whether to keep room of this size, of which so much was used just
// now. Up to small it always is, above most never.
func (k *keeper) keep(size, used, small, most int) bool {
	switch {
	case used > small:
		k.little = 0
	case k.little < patience:
		k.little++
	}
	return size <= small || size <= most && k.little < patience
}
