package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// fourLetterTimeout limits one exchange, because a paused server accepts the connection and
// does not answer.
const fourLetterTimeout = time.Minute

// maxFourLetter limits the size of an answer. Those of a large server are far smaller.
const maxFourLetter = 8 << 20

// FourLetter sends the four-letter word to the server at addr (host:port) and returns the
// whole answer.
func FourLetter(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fourLetterTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("harness: %s: %w", word, err)
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", fmt.Errorf("harness: %s: %w", word, err)
		}
	}
	// A canceled context must not wait for the deadline.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("harness: %s: %w", word, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxFourLetter))
	if err != nil {
		return "", fmt.Errorf("harness: %s: %w", word, err)
	}
	return string(answer), nil
}

// FourLetterField returns the value of a "name: value" line in the answer to a four-letter
// word, such as "Mode" of "srvr", or an empty string.
func FourLetterField(answer, name string) string {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// poll calls try at once and then at the interval until try returns nil, ctx ends, or stop is
// closed. It returns the last error of try, joined with that of ctx.
func poll(ctx context.Context, stop <-chan struct{}, interval time.Duration, try func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-stop:
			return err
		}
	}
}
