package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/netutil"
)

// maxAnswer limits the answer to a four-letter word. That of mntr can have dozens of
// kilobytes.
const maxAnswer = 1 << 20

// errNotAllowed means that the server does not allow a four-letter word.
var errNotAllowed = errors.New("the word is not in the server's 4lw.commands.whitelist")

// errNotServing means that the server has no quorum, for example during an election.
var errNotServing = errors.New("the server does not serve requests")

// ask sends a four-letter word to the server at address and returns its answer. It uses
// TLS if the sessions do.
func (c Config) ask(ctx context.Context, network, address, word string) (string, error) {
	dial := c.Zk.DialContext
	if dial == nil {
		dial = netutil.Dial
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return "", err
	}
	if c.Zk.TLS != nil {
		host, _, _ := net.SplitHostPort(address)
		conn = tls.Client(conn, netutil.ForHost(c.Zk.TLS, host))
	}
	defer func() { _ = conn.Close() }()
	// Close the connection at the end of ctx, because custom connections may ignore deadlines.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("%s: %w", word, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil && len(answer) == 0 {
		return "", fmt.Errorf("%s: %w", word, err)
	}
	if strings.HasPrefix(string(answer), word+" is not executed") {
		return "", errNotAllowed
	}
	if strings.HasPrefix(string(answer), "This ZooKeeper instance is not currently serving requests") {
		return "", errNotServing
	}
	return string(answer), nil
}

// srvr parses the answer to srvr.
func (s *Server) srvr(answer string) {
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "Zookeeper version: "); ok {
			s.Version = plain(text[:len(text)-len(strings.TrimLeft(text, "0123456789."))])
		}
		if text, ok := strings.CutPrefix(line, "Mode: "); ok {
			s.Role = cmp.Or(s.Role, plain(text)) // a session has shown that it is read-only
		}
		if text, ok := strings.CutPrefix(line, "Outstanding: "); ok {
			s.Outstanding = number(text)
		}
	}
}

// conf parses the answer to conf.
func (s *Server) conf(answer string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "tickTime":
			s.Tick = Span(time.Duration(number(value)) * time.Millisecond)
		case "syncLimit":
			s.SyncLimit = number(value)
		case "minSessionTimeout":
			s.MinTimeout = Span(time.Duration(number(value)) * time.Millisecond)
		case "maxSessionTimeout":
			s.MaxTimeout = Span(time.Duration(number(value)) * time.Millisecond)
		}
	}
}

// mntr parses the answer to mntr.
func (s *Server) mntr(answer string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		value, _, _ = strings.Cut(value, ".") // some versions write floating point
		switch key {
		case "zk_synced_followers":
			s.Synced = number(value)
		case "zk_open_file_descriptor_count":
			s.OpenFiles = number(value)
		case "zk_max_file_descriptor_count":
			s.MaxFiles = number(value)
		}
	}
}

// number parses a number that a server sent. It returns 0 if the number is invalid or negative.
func number(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// plain returns the printable ASCII characters of a short text that a server sent, because
// any program may answer at the address.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text[:min(len(text), 40)])
}
