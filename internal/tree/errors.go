package tree

import "errors"

// ErrCorrupt is what the errors of Replay and Restore wrap: the bytes are not
// what a Tree wrote, or don't fit the state. The Tree must not be used any more;
// start from another snapshot, or from the records alone.
var ErrCorrupt = errors.New("tree: corrupt record or snapshot, recover from another copy")

// ErrVersion is what the errors of Replay and Restore wrap if a newer version of
// this program wrote the bytes: use that one, or a still newer one.
var ErrVersion = errors.New("tree: a newer version of this program wrote this, use that one")
