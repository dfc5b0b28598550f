package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// fourLetterTimeout bounds one exchange, as a server that is paused accepts the
// connection and says nothing.
const fourLetterTimeout = time.Minute

// maxFourLetter bounds an answer; "mntr" and "dump" of a large server stay
// far below.
const maxFourLetter = 8 << 20

// FourLetter sends the four-letter word to the server at addr (host:port) and
// returns its whole answer. It works for any server of the ZooKeeper protocol
// that allows the word.
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

// FourLetterField returns the value of a "name: value" line of a four-letter word's
// answer, as "Mode" of "srvr"; empty if there is none.
func FourLetterField(answer, name string) string {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// poll calls try at once and then at the interval until it returns nil, or ctx
// ends, or stop is closed; it returns the last error of try with why it gave up.
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
