package zklock

import (
	"errors"
	"reflect"
	"testing"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// TestUnwatchAsksWhetherServersRemoveWatches checks that a client removes watches only after
// an answer that proves that /zookeeper/config exists. An ACL may forbid to read it.
func TestUnwatchAsksWhetherServersRemoveWatches(t *testing.T) {
	for err, proves := range map[error]bool{nil: true, zk.ErrNoAuth: true, zk.ErrNoNode: false, zk.ErrConnectionLost: false} {
		f := &pendingRequest{client: new(Client), request: queue.Request{Kind: queue.Unwatch, Path: "/a"}}
		if op := f.client.toOp(&f.request); !reflect.DeepEqual(op, zk.GetConfigOp()) {
			t.Errorf("the first request is %v", op)
		}
		if q := f.reply(&zk.Result{Err: err}); !errors.Is(q.Err, err) || q.Code != code(err) {
			t.Errorf("%v: reply %v, code %d", err, q.Err, q.Code)
		}
		if removes := f.client.unwatches.Load(); removes != proves {
			t.Errorf("after %v, watches are removed: %v", err, removes)
		}
	}
}
