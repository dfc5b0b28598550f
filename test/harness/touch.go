package harness

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// touchTime is the time format in the log of a server with [TouchFlags].
const touchTime = "2006-01-02T15:04:05.000Z07:00"

// pingTraces is ZooTrace.CLIENT_PING_TRACE_MASK, which traces heartbeats.
const pingTraces = 1 << 3

// TouchFlags returns the flags of a JVM that can log when a leader renews a session. See
// [Server.TraceTouches].
func TouchFlags() []string {
	const logger = "-Dorg.slf4j.simpleLogger."
	return []string{
		logger + "showDateTime=true", logger + "dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
		logger + "log.org.apache.zookeeper.server.SessionTrackerImpl=trace",
	}
}

// TraceTouches makes a server with [TouchFlags] log each renewal of a session until it ends.
func (n *Server) TraceTouches(ctx context.Context) error {
	_, err := FourLetter(ctx, n.addr, "stmk"+string(binary.BigEndian.AppendUint64(nil, pingTraces)))
	return err
}

// LastTouches returns the time of each session's last renewal before the given time, while the
// server was the leader. The session timeout counts from the renewal.
func (n *Server) LastTouches(before time.Time) (map[int64]time.Time, error) {
	file, err := os.Open(n.LogPath())
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	last := map[int64]time.Time{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		moment, text, _ := strings.Cut(lines.Text(), " ")
		_, text, found := strings.Cut(text, "Touch session: 0x")
		if !found {
			continue
		}
		id, _, _ := strings.Cut(text, " ")
		session, err := strconv.ParseUint(id, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("harness: %q: %w", lines.Text(), err)
		}
		at, err := time.Parse(touchTime, moment)
		if err != nil {
			return nil, fmt.Errorf("harness: %w", err)
		}
		if at.Before(before) {
			last[int64(session)] = at
		}
	}
	return last, lines.Err()
}
