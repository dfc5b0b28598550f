package checkup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds a four-letter word's answer: mntr of a large server has some
// dozens of kilobytes.
const maxAnswer = 1 << 20

// errNotAllowed is a server's refusal of a four-letter word.
var errNotAllowed = errors.New("the word is not in the server's 4lw.commands.whitelist")

// ask sends a four-letter word to the server at address, over TLS where the sessions
// go over TLS, and returns its answer.
func (c Config) ask(ctx context.Context, network, address, word string) (string, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return "", err
	}
	if c.Zk.TLS != nil {
		config := c.Zk.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		conn = tls.Client(conn, config)
	}
	defer func() { _ = conn.Close() }()
	// Not only a deadline: a relay's connections may have none.
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
	return string(answer), nil
}

// srvr takes what a server says of itself to everybody.
func (s *Server) srvr(answer string) {
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "Zookeeper version: "); ok {
			s.Version = plain(text[:leading(text, "0123456789.")])
		}
		if text, ok := strings.CutPrefix(line, "Mode: "); ok {
			s.Role = plain(text)
		}
		if text, ok := strings.CutPrefix(line, "Outstanding: "); ok {
			s.Outstanding = number(text)
		}
	}
}

// conf takes what a server's configuration says.
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

// mntr takes a server's figures.
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

// leading counts the bytes at the beginning that are among these.
func leading(text, these string) int {
	return len(text) - len(strings.TrimLeft(text, these))
}

// number is what a server wrote as one; 0 if it is none, or less.
func number(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// plain keeps the printable ASCII of a short text that a server sent: who answers
// at an address may be anybody.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text[:min(len(text), 40)])
}
