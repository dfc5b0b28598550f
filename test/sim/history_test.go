package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"time"
)

// tailLines is how much of a history is kept to be shown with a failure.
const tailLines = 120

// history is what happened, line by line: a hash of all, and the last lines.
type history struct {
	sum  hash.Hash
	tail [tailLines]string
	n    int
	line []byte
}

func newHistory() history { return history{sum: sha256.New()} }

func (h *history) add(now time.Duration, format string, args ...any) {
	h.line = fmt.Appendf(h.line[:0], "%12.6f ", now.Seconds())
	h.line = fmt.Appendf(h.line, format, args...)
	h.line = append(h.line, '\n')
	h.sum.Write(h.line)
	h.tail[h.n%tailLines] = string(h.line)
	h.n++
}

// note writes a line of the history.
func (w *World) note(format string, args ...any) {
	w.hist.add(w.now, format, args...)
	if w.Trace != nil {
		_, _ = w.Trace.Write(w.hist.line)
	}
}

// trace writes what is too detailed for the history.
func (c *client) trace(format string, args ...any) {
	if w := c.world; w.Trace != nil {
		_, _ = fmt.Fprintf(w.Trace, "%12.6f   %s "+format+"\n", append([]any{w.now.Seconds(), c.name}, args...)...)
	}
}

// Hash is the hash of the whole history.
func (w *World) Hash() string { return hex.EncodeToString(w.hist.sum.Sum(nil)) }

// Tail is the end of the history.
func (w *World) Tail() string {
	var b strings.Builder
	for i := max(0, w.hist.n-tailLines); i < w.hist.n; i++ {
		b.WriteString(w.hist.tail[i%tailLines])
	}
	return b.String()
}

// fail ends the history with what was broken. The first failure counts.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.rule = format
		w.err = fmt.Errorf("sim: seed %d at %.6f s: "+format, append([]any{w.cfg.Seed, w.now.Seconds()}, args...)...)
		w.note("FAILED %v", w.err)
	}
}

// Failure is what was broken, without the names and numbers of this one history;
// empty if nothing was.
func (w *World) Failure() string { return w.rule }
