package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"time"
)

// tailLines is the number of lines that a failure shows.
const tailLines = 120

// history has a hash of all lines and the last lines.
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

// trace writes details to the trace, and not to the history.
func (c *client) trace(format string, args ...any) {
	if w := c.world; w.Trace != nil {
		_, _ = fmt.Fprintf(w.Trace, "%12.6f   %s "+format+"\n", append([]any{w.now.Seconds(), c.name}, args...)...)
	}
}

// Hash returns the hash of the complete history.
func (w *World) Hash() string { return hex.EncodeToString(w.hist.sum.Sum(nil)) }

// Tail returns the end of the history.
func (w *World) Tail() string {
	var b strings.Builder
	for i := max(0, w.hist.n-tailLines); i < w.hist.n; i++ {
		b.WriteString(w.hist.tail[i%tailLines])
	}
	return b.String()
}

// fail ends the history with a broken rule. Only the first failure counts.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.rule = format
		w.err = fmt.Errorf("sim: seed %d at %.6f s: "+format, append([]any{w.cfg.Seed, w.now.Seconds()}, args...)...)
		w.note("FAILED %v", w.err)
	}
}

// Failure returns the broken rule without the names and numbers of the history. It is empty
// if no rule was broken.
func (w *World) Failure() string { return w.rule }
