package load

import (
	"fmt"

	"github.com/zklock/zklock/internal/wire"
)

// Fanout is the job of watching one node from many sessions while another session changes
// it: client 0 is the writer, and all other clients watch. A turn has two parts. After Arm,
// the watchers read the node and set a watch. After Fire, the writer sets the data, and the
// turn ends when every watcher has received its event.
type Fanout struct {
	path   string
	begun  []bool
	events []int // of each client in this turn
	done   int   // watchers that have received their event
	arm    bool
}

// NewFanout returns the job for a group of clients, including the writer.
func NewFanout(path string, clients int) *Fanout {
	return &Fanout{path: path, begun: make([]bool, clients), events: make([]int, clients)}
}

// Arm begins the part of a turn in which the watches are set.
func (f *Fanout) Arm() { f.begin(true) }

// Fire begins the part in which the watches fire.
func (f *Fanout) Fire() { f.begin(false) }

func (f *Fanout) begin(arm bool) {
	f.arm, f.done = arm, 0
	clear(f.begun)
	clear(f.events)
}

// Done reports whether every watcher has received its event.
func (f *Fanout) Done() bool { return f.done == len(f.events)-1 }

// Next implements [Job]: one request for each client.
func (f *Fanout) Next(i int, xid int32, _ bool, b []byte) ([]byte, bool) {
	writer := i == 0
	if f.begun[i] || writer == f.arm {
		return b, false
	}
	f.begun[i] = true
	if writer {
		return wire.AppendRequest(b, xid, wire.OpSetData, &wire.SetDataRequest{Path: f.path, Version: -1}), true
	}
	return wire.AppendRequest(b, xid, wire.OpGetData, &wire.GetDataRequest{Path: f.path, Watch: true}), true
}

// Check implements [Job].
func (f *Fanout) Check(i int, h wire.ReplyHeader, body []byte) error {
	if h.Xid != wire.XidEvent {
		if h.Err != wire.ErrOK {
			return fmt.Errorf("%w: client %d: %w", ErrAnswer, i, h.Err)
		}
		return nil
	}
	f.events[i]++
	if f.arm || i == 0 || f.events[i] > 1 {
		return fmt.Errorf("%w: client %d got an event without a change", ErrAnswer, i)
	}
	f.done++
	return nil
}
