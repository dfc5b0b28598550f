package zklock

import (
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// versions is what checks is not: it asks for entries by the version that they
// were made with. It serves the planted bug of that name (see internal/plant),
// and no build without it.
func versions(r *queue.Request) []zk.Op {
	ops := make([]zk.Op, 0, len(r.Paths))
	for _, p := range r.Paths {
		ops = append(ops, zk.CheckOp(p, 0))
	}
	return ops
}
