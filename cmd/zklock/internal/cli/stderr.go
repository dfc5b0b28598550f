package cli

import (
	"io"
	"os"
	"sync"
	"time"
)

const (
	// stderrTime is how long a caller waits for its line on standard error. Longer, it would
	// keep the command from its signal: whatever reads standard error may stop, such as a
	// terminal after Ctrl-S.
	stderrTime = 100 * time.Millisecond
	// lastTime is how long the last line waits, which ends the program.
	lastTime = time.Second
	// maxLines is how many lines wait. Further ones are dropped, and counted.
	maxLines = 64
)

// Stderr is standard error for messages and for the log of a server. A write waits only for
// a moment if standard error takes no more: then it continues in the background, or is
// dropped if many wait.
var Stderr io.Writer = lineWriter{stderrTime}

// lines is what is to be written, in order.
var lines struct {
	sync.Mutex
	waiting []line
	written chan struct{} // closed when all is written; nil if a goroutine writes nothing
	late    bool          // a caller waited in vain for them
	dropped int           // lines that were dropped and not yet reported
}

// line is a text with the file for it.
type line struct {
	file *os.File
	text string
}

// lineWriter writes lines, and waits for each at most for its time.
type lineWriter struct{ wait time.Duration }

// Write implements io.Writer.
func (w lineWriter) Write(p []byte) (int, error) {
	lines.Lock()
	if len(lines.waiting) < maxLines || w.wait == lastTime {
		lines.waiting = append(lines.waiting, line{os.Stderr, string(p)})
	} else {
		lines.dropped++
	}
	if lines.written == nil {
		lines.written = make(chan struct{})
		go writeLines(lines.written)
	}
	written, late := lines.written, lines.late
	lines.Unlock()
	if late && w.wait < lastTime {
		return len(p), nil
	}
	t := time.NewTimer(w.wait)
	defer t.Stop()
	select {
	case <-written:
	case <-t.C:
		lines.Lock()
		lines.late = lines.written == written
		lines.Unlock()
	}
	return len(p), nil
}

// writeLines writes the lines that wait, and closes written when there are no more.
func writeLines(written chan struct{}) {
	defer close(written)
	for {
		lines.Lock()
		if len(lines.waiting) == 0 {
			lines.written, lines.late = nil, false
			lines.Unlock()
			return
		}
		next := lines.waiting[0]
		lines.Unlock()
		_, _ = next.file.WriteString(next.text) // an error could only be reported on standard error
		lines.Lock()
		lines.waiting = lines.waiting[1:]
		if lines.dropped > 0 && len(lines.waiting) == 0 {
			text := Warning("%d lines are not shown, because standard error was not read", lines.dropped)
			lines.waiting, lines.dropped = append(lines.waiting, line{next.file, text}), 0
		}
		lines.Unlock()
	}
}
