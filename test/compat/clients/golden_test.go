package clients

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
)

var update = flag.Bool("update", false, "write the recordings instead of comparing")

// recordings is the directory of the golden files.
const recordings = "../../../internal/wire/testdata/golden"

const comment = `Recorded between the Java client of Apache ZooKeeper 3.8.0 and the server of 3.9.3.
Lines: name direction op hex(frame without its length); op 0: event, handshake.
Written by: go test ./compat/clients -update (in the folder test)
`

// TestZooKeeperStillSendsRecordedFrames records again. It compares names, operations, lengths,
// errors, and events, because session ids, passwords, and times differ between runs.
func TestZooKeeperStillSendsRecordedFrames(t *testing.T) {
	n := harness.StartServer(t, harness.ServerConfig{Release: harness.Release39})
	got := capture(t, n.Addr())
	if *update {
		writeRecordings(t, got)
	}
	want := loadRecordings(t)
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("recorded files %v, have %v", g, w)
	}
	for file := range want {
		compareFrames(t, file, got[file], want[file])
	}
}

func TestEmbeddedServerSendsRecordedFrames(t *testing.T) {
	harness.NeedZooKeeper(t)
	got := capture(t, harness.Serve(t, zkserver.Options{
		TickTime: 500 * time.Millisecond, ExtendedTypes: true, MaxClientConns: -1,
	}))
	for file, frames := range loadRecordings(t) {
		compareFrames(t, file, got[file], frames)
	}
}

func writeRecordings(t *testing.T, all map[string][]Frame) {
	t.Helper()
	if err := os.MkdirAll(recordings, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, frames := range all {
		var b bytes.Buffer
		if err := writeFrames(&b, comment, frames); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(recordings, file+".txt"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func loadRecordings(t *testing.T) map[string][]Frame {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(recordings, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings in %s (%v); run with -update", recordings, err)
	}
	all := make(map[string][]Frame)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := readFrames(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".txt")] = frames
	}
	return all
}

// compareFrames compares the frames of each direction. Their order relative to the other direction
// varies, because the client sends some requests without waiting.
func compareFrames(t *testing.T, file string, got, want []Frame) {
	t.Helper()
	for _, side := range []map[string]bool{
		{ConnectRequest: true, Request: true},
		{ConnectReply: true, Reply: true, Event: true},
	} {
		other := func(f Frame) bool { return !side[f.Direction] }
		g := shapes(slices.DeleteFunc(slices.Clone(got), other))
		w := shapes(slices.DeleteFunc(slices.Clone(want), other))
		diff(t, file, g, w)
	}
}

func diff(t *testing.T, file string, g, w []string) {
	t.Helper()
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			t.Errorf("%s: not seen: %s", file, w[i])
		case i >= len(w):
			t.Errorf("%s: new: %s", file, g[i])
		case g[i] != w[i]:
			t.Errorf("%s: got %s\nwant %s", file, g[i], w[i])
		}
	}
}

// shapes describes each frame without values that differ between runs. For the zxid of an event, it
// reports only whether there is one.
func shapes(frames []Frame) []string {
	var lines []string
	for _, f := range frames {
		line := fmt.Sprintf("%s %s %d length %d", f.Name, f.Direction, f.Op, len(f.Body))
		if f.Direction == Reply && len(f.Body) >= 16 {
			line += fmt.Sprintf(" error %d", int32(binary.BigEndian.Uint32(f.Body[12:])))
		}
		if f.Direction == Event && len(f.Body) >= 16 {
			named := int64(binary.BigEndian.Uint64(f.Body[4:])) > 0
			line += fmt.Sprintf(" names transaction %v, %x", named, f.Body[12:])
		}
		lines = append(lines, line)
	}
	return lines
}

// TestRecordingsContainAllOperations needs no ZooKeeper.
func TestRecordingsContainAllOperations(t *testing.T) {
	requests, replies := map[int32]int{}, map[int32]int{}
	directions := map[string]int{}
	for _, frames := range loadRecordings(t) {
		for _, f := range frames {
			directions[f.Direction]++
			switch f.Direction {
			case Request:
				requests[f.Op]++
			case Reply:
				replies[f.Op]++
			}
		}
	}
	for _, op := range []int32{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 21, 22, 100, 101, 103, 104, 105, 106, 107, -11,
	} {
		if requests[op] == 0 || replies[op] == 0 {
			t.Errorf("operation %d: %d requests and %d replies recorded", op, requests[op], replies[op])
		}
	}
	for _, d := range []string{Event, ConnectRequest, ConnectReply} {
		if directions[d] < 3 {
			t.Errorf("%d frames of direction %s", directions[d], d)
		}
	}
}

func TestReadFramesRejectsInvalidLines(t *testing.T) {
	for name, text := range map[string]string{
		"fields":    "a request 1",
		"direction": "a sideways 1 00",
		"op":        "a request one 00",
		"hex":       "a request 1 0g",
		"twice":     "a request 1 00\na reply 1 00",
	} {
		if _, err := readFrames(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v, want ErrFormat", name, err)
		}
	}
}

func TestFramesRoundTrip(t *testing.T) {
	want := []Frame{
		{Name: "a-request", Direction: Request, Op: -11, Body: []byte{0, 1, 255}},
		{Name: "a-event", Direction: Event, Body: []byte{}},
	}
	var b bytes.Buffer
	if err := writeFrames(&b, "one\ntwo\n", want); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "# one\n# two\na-request request -11 0001ff\n") {
		t.Errorf("wrote\n%s", b.String())
	}
	got, err := readFrames(&b)
	if err != nil || len(got) != 2 {
		t.Fatalf("read %v, %v", got, err)
	}
	for i, f := range got {
		if f.Name != want[i].Name || f.Op != want[i].Op || !bytes.Equal(f.Body, want[i].Body) {
			t.Errorf("frame %d is %+v, want %+v", i, f, want[i])
		}
	}
}

func TestConnRecorderNamesFrames(t *testing.T) {
	rec := newRecorder()
	d := &connRecorder{rec: rec, ops: make(map[int32]int32)}
	header := func(xid, op int32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(xid)), uint32(op))
	}
	d.fromClient(make([]byte, 44)) // before any step: not recorded
	rec.begin("f/x", false)
	d.fromServer(make([]byte, 36))
	d.fromClient(header(7, 4))
	d.fromClient(header(-2, 11)) // a ping in between
	d.fromServer(header(-2, 0))
	d.fromServer(header(-1, 0))
	d.fromServer(header(7, 0))
	rec.begin("f/y", true)
	d.fromClient(header(-2, 11))
	d.fromServer(header(-2, 0))
	<-rec.ponged
	var got []string
	for _, f := range rec.frames["f"] {
		got = append(got, fmt.Sprint(f.Name, " ", f.Op))
	}
	want := []string{"f-x-connect-reply 0", "f-x-request 4", "f-x-event 0", "f-x-reply 4", "f-y-request 11", "f-y-reply 11"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
