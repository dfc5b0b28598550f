package locks

// The top command shows locks live in a terminal: a list of locks, and the queue of
// each lock as a chain. The screen is a function of a [Model], which keys and snapshots
// change. The loop is runTop.
