package storm

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/zklock/zklock/test/kinds"
)

// What storms of other packages, over other servers, are made with.

// Worker is one life of a worker process.
type Worker struct{ life *life }

// Begin starts a worker, which needs a binary whose TestMain calls [Child]. The
// caller ends it.
func Begin(o Orders) (*Worker, error) {
	l, err := begin(o)
	if err != nil {
		return nil, err
	}
	return &Worker{l}, nil
}

// Orders are what the worker was told.
func (w *Worker) Orders() Orders { return w.life.orders }

// Pid is its process's.
func (w *Worker) Pid() int { return w.life.proc.Pid() }

// Done is closed when it has ended.
func (w *Worker) Done() <-chan struct{} { return w.life.proc.Done() }

// Signal sends it a signal.
func (w *Worker) Signal(sig os.Signal) error { return w.life.proc.Signal(sig) }

// Kill ends it by SIGKILL.
func (w *Worker) Kill() { w.life.proc.Kill() }

// Said is the end of what it has written to its standard error.
func (w *Worker) Said() string { return w.life.said() }

// Stacks has it say what its goroutines do, and end.
func (w *Worker) Stacks() string { return w.life.stacks() }

// Rest tells it to rest; the channel then has its word that it does.
func (w *Worker) Rest() (<-chan error, error) {
	_, err := io.WriteString(w.life.stdin, "rest\n")
	return w.life.resting, err
}

// End tells it to end and waits for that.
func (w *Worker) End(ctx context.Context) error {
	if err := w.life.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-w.life.proc.Done():
		return w.life.proc.Wait()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Happened counts a fault.
func (t *Totals) Happened(fault string) { t.count(fault, 1) }

// Append appends a row with the totals to a file.
func (t *Totals) Append(path, command string) error {
	return AppendRow(path, t.Row(time.Now(), commit(), command))
}

// LeftBehind looks, while all clients of these kinds of lock rest, for what they
// have forgotten. An error that is none of the network's wraps ErrLeft.
func LeftBehind(ctx context.Context, servers string, timeout time.Duration, some []kinds.Kind) error {
	server := &Server{Addr: servers, Timeout: timeout}
	op, err := newOperator(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = op.client.Close() }()
	var roots []string
	for _, k := range some {
		roots = append(roots, "/"+k.Name)
		if k.Delayed {
			if err := tidy(ctx, server, k); err != nil {
				return err
			}
		}
	}
	return op.emptied(ctx, roots, 2*timeout+4*tick)
}

// ErrLeft says that clients that rest have left znodes behind.
var ErrLeft = errLeft
