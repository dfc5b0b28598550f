package peer

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Received returns the number of requests that the server received before this one, which
// is zk_packets_received in mntr.
func (s *Server) Received() (int64, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, probeTimeout)
	if err != nil {
		return 0, fmt.Errorf("peer: mntr: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return 0, fmt.Errorf("peer: mntr: %w", err)
	}
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return 0, fmt.Errorf("peer: mntr: %w", err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return 0, fmt.Errorf("peer: mntr: %w", err)
	}
	return parseReceived(string(text))
}

// parseReceived finds the line in the output of mntr.
func parseReceived(text string) (int64, error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if key == "zk_packets_received" {
			n, err := strconv.ParseFloat(value, 64)
			return int64(n), err
		}
	}
	return 0, fmt.Errorf("peer: mntr has no zk_packets_received: %.100q", text)
}
