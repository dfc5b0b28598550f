package wire_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// goldenMessage is a message that was captured between ZooKeeper's client and server: a line "name
// direction op hex" of a file in testdata/golden. The direction is request, reply, event,
// connect-request, or connect-reply. op is the decimal code of the operation, and hex is the body
// of the frame without its length.
type goldenMessage struct {
	name      string
	direction string
	op        wire.OpCode
	body      []byte
}

// parseGolden reads one line.
func parseGolden(line string) (goldenMessage, error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return goldenMessage{}, fmt.Errorf("%d fields, want name, direction, op, hex", len(fields))
	}
	m := goldenMessage{name: fields[0], direction: fields[1]}
	switch m.direction {
	case dirRequest, dirReply, dirEvent, dirConnectRequest, dirConnectResponse:
	default:
		return m, fmt.Errorf("unknown direction %q", m.direction)
	}
	op, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil {
		return m, fmt.Errorf("op: %w", err)
	}
	m.op = wire.OpCode(op)
	if m.body, err = hex.DecodeString(fields[3]); err != nil {
		return m, fmt.Errorf("hex: %w", err)
	}
	return m, nil
}

// readGolden reads all files. It ignores empty lines and lines that begin with #. It fails the test
// if a line is malformed or a file has no message.
func readGolden(t testing.TB) []goldenMessage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []goldenMessage
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := len(all)
		for i, line := range strings.Split(string(text), "\n") {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			m, err := parseGolden(line)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, i+1, err)
			}
			m.name = strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + m.name
			all = append(all, m)
		}
		if len(all) == before {
			t.Fatalf("%s holds no message", file)
		}
	}
	return all
}

// TestCapturedMessagesRoundTrip decodes every captured message and encodes it again.
func TestCapturedMessagesRoundTrip(t *testing.T) {
	messages := readGolden(t)
	if len(messages) == 0 {
		t.Fatal("no captured messages in testdata/golden; they are committed with this test")
	}
	for _, m := range messages {
		t.Run(m.name+"/"+m.direction, func(t *testing.T) {
			got, err := recode(m.direction, m.op, m.body)
			if err != nil {
				t.Fatalf("%v: %v\n%x", m.op, err, m.body)
			}
			if !bytes.Equal(got, m.body) {
				t.Errorf("%v: read\n%x, wrote\n%x", m.op, m.body, got)
			}
		})
	}
}

func TestParseGoldenRefusesMalformedLines(t *testing.T) {
	m, err := parseGolden("sync request 9 0000000100000009000000012f")
	if err != nil || m.name != "sync" || m.op != wire.OpSync || len(m.body) != 13 {
		t.Errorf("got %+v and %v", m, err)
	}
	for _, line := range []string{
		"", "sync", "sync request 9", "sync request 9 00 00", "sync question 9 00",
		"sync request nine 00", "sync request 9 0", "sync request 9 0g", "sync request 99999999999 00",
	} {
		if _, err := parseGolden(line); err == nil {
			t.Errorf("line %q was accepted", line)
		}
	}
}

// TestRecodeRefusesWrongMessages checks the decoder that the tests use.
func TestRecodeRefusesWrongMessages(t *testing.T) {
	sync := wire.AppendRequest(nil, 1, wire.OpSync, &wire.SyncRequest{Path: "/"})[4:]
	unknown := wire.AppendRequest(nil, 1, 77, &wire.SyncRequest{Path: "/"})[4:]
	tests := []struct {
		name, direction string
		op              wire.OpCode
		body            []byte
	}{
		{"another operation", dirRequest, wire.OpPing, sync},
		{"unknown request", dirRequest, 77, unknown},
		{"unknown answer", dirReply, 77, make([]byte, 16)},
		{"unknown direction", "question", wire.OpSync, sync},
		{"empty", dirRequest, wire.OpSync, nil},
		{"trailing byte", dirRequest, wire.OpSync, append(sync, 0)},
	}
	for _, test := range tests {
		if _, err := recode(test.direction, test.op, test.body); err == nil {
			t.Errorf("%s was accepted", test.name)
		}
	}
}
