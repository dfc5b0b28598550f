package zkserver

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// FuzzStream sends arbitrary bytes, with and without a session. The server must end the
// connection and still serve another client.
func FuzzStream(f *testing.F) {
	for _, frame := range hostileFrames() {
		f.Add(true, frame)
		f.Add(false, frame)
	}
	f.Add(false, []byte("srvr"))
	f.Add(false, []byte("stat\n"))
	hello := wire.ConnectRequest{Timeout: 1000, HasReadOnly: true}
	f.Add(false, wire.AppendRequest(wire.AppendRecord(nil, &hello), 1, wire.OpCloseSession, nil))
	create := &wire.CreateRequest{Path: "/a", ACL: openACL()}
	b := wire.AppendRequest(nil, 1, wire.OpCreate, create)
	b = wire.AppendRequest(b, 2, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreate, Req: create}}})
	b = wire.AppendRequest(b, 3, wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{"/a"}})
	f.Add(true, wire.AppendRequest(b, 4, wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/", Watch: true}))
	f.Fuzz(func(t *testing.T, withSession bool, stream []byte) {
		synctest.Test(t, func(t *testing.T) { fuzzStream(t, withSession, stream) })
	})
}

func fuzzStream(t *testing.T, withSession bool, stream []byte) {
	opts := testOptions(t)
	opts.Logger = discard()
	opts.FourLetterWords = []string{"*"}
	s := start(t, opts)
	good := login(t, s, time.Hour)
	var bad *rawClient
	if withSession {
		bad = login(t, s, time.Second)
	} else {
		bad = open(t, s)
	}
	go func() {
		for len(stream) > 0 {
			n := min(len(stream), 1+len(stream)/3)
			if _, err := bad.nc.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
	}()
	// Sessions end after an hour at most, and connections with them.
	bad.nc.SetReadDeadline(time.Now().Add(2 * time.Hour))
	if _, err := io.Copy(io.Discard, bad.br); err != nil && !closedError(err) {
		t.Errorf("the connection is still open: %v", err)
	}
	if again := login(t, s, time.Minute); !again.exists("/zookeeper") {
		t.Error("the tree is broken")
	}
	good.nc.Close()
}

// FuzzSessions runs a script made of the fuzzer's bytes against a server with a log in memory.
// Three connections with sessions send valid, damaged, or truncated frames. They end in every
// way and resume. One of them never reads. Afterwards the server must serve another session and
// have used bounded memory. A server that recovers from the log must have the same state, byte
// for byte.
func FuzzSessions(f *testing.F) {
	for _, script := range seedScripts() {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) { runScript(t, script) })
	})
}

// The steps of a script. The two low bits of a step's byte select the connection. The top bit
// of a script's first byte selects low limits.
const (
	stepRaw     = iota << 2 // length, bytes: written as they are
	stepFrame               // operation, length, bytes: a frame with any body
	stepRequest             // operation, path, variant: a complete request
	stepPart                // the same and a length: the next write sends the rest
	stepReset               // resets the connection
	stepResume              // resumes the session on a new connection
	stepHalf                // closes the client's sending side
	stepSleep               // units of 20 ms
	stepKinds   = 8
)

const (
	scriptSteps = 300 // bounds the time that a script takes
	scriptConns = 3   // the last one never reads
)

// scriptOps returns the operations of scripts, by index.
func scriptOps() []wire.OpCode {
	return []wire.OpCode{
		wire.OpCreate, wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpGetACL, wire.OpSetACL,
		wire.OpGetChildren, wire.OpSync, wire.OpPing, wire.OpGetChildren2, wire.OpCheck, wire.OpMulti, wire.OpCreate2,
		wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpCreateContainer, wire.OpDeleteContainer,
		wire.OpCreateTTL, wire.OpMultiRead, wire.OpAuth, wire.OpSetWatches, wire.OpSASL, wire.OpGetEphemerals,
		wire.OpGetAllChildrenNumber, wire.OpSetWatches2, wire.OpAddWatch, wire.OpWhoAmI, wire.OpCreateSession,
		wire.OpCloseSession, 77,
	}
}

// seedScripts returns the scripts from which the fuzzer starts.
func seedScripts() [][]byte {
	op := func(want wire.OpCode) byte {
		for i, o := range scriptOps() {
			if o == want {
				return byte(i)
			}
		}
		return 0
	}
	scripts := [][]byte{
		{stepRequest, op(wire.OpAddWatch), 0, 1, stepRequest | 1, op(wire.OpCreate), 1, 1, stepReset | 1, stepSleep, 200, stepResume | 1},
		{stepPart, op(wire.OpMulti), 2, 5, 9, stepRequest | 1, op(wire.OpSetData), 2, 0, stepRaw, 0, stepHalf, stepResume},
		{stepRequest | 2, op(wire.OpGetChildren2), 0, 1, stepRequest, op(wire.OpCreate), 3, 2, stepRequest, op(wire.OpCreate), 3, 2},
		{stepFrame, op(wire.OpSetWatches2), 8, 0, 0, 0, 0, 0, 0, 0, 1, stepRaw, 4, 0xff, 0xff, 0xff, 0xff, stepResume},
		{stepRequest, op(wire.OpCreate), 1, 1, stepRequest, op(wire.OpCloseSession), 0, 0, stepResume, stepSleep, 255},
	}
	var all []byte
	for i := range scriptOps() {
		all = append(all, stepRequest|byte(i%scriptConns), byte(i), byte(i%7), byte(i))
	}
	scripts = append(scripts, all)
	for _, script := range scripts {
		limited := bytes.Clone(script)
		limited[0] |= 0x80
		scripts = append(scripts, limited)
	}
	return scripts
}

type scriptRunner struct {
	t      *testing.T
	s      *Server
	script []byte
	conns  [scriptConns]*rawClient
	unsent [scriptConns][]byte // rest of a frame that was written in part
}

func (a *scriptRunner) byte() byte {
	if len(a.script) == 0 {
		return 0
	}
	b := a.script[0]
	a.script = a.script[1:]
	return b
}

func (a *scriptRunner) bytes() []byte {
	n := min(int(a.byte()), len(a.script))
	b := a.script[:n]
	a.script = a.script[n:]
	return b
}

func runScript(t *testing.T, script []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	opts, _ := onMemory(t, 2)
	opts.MaxOutstanding = 20
	if len(script) > 0 && script[0]&0x80 != 0 {
		// The script can reach every limit.
		opts.MaxOutstandingTotal, opts.MaxOutstandingBytes, opts.MaxUnreadTotal = 15, 8<<10, 64<<10
		opts.MaxNodes, opts.MaxData, opts.MaxWatches, opts.MaxWatchesPerConn, opts.MaxReply = 12, 4000, 6, 4, 600
	}
	a := &scriptRunner{t: t, s: start(t, opts), script: script}
	good := login(t, a.s, time.Hour)
	for i := range a.conns {
		a.connect(i, nil)
	}
	for n := 0; n < scriptSteps && len(a.script) > 0; n++ {
		a.step()
	}
	good.do(wire.OpPing, nil)
	synctest.Wait()
	good.do(wire.OpCreate, &wire.CreateRequest{Path: "/good", ACL: openACL(), Flags: wire.ModeEphemeralSequential}, wire.ErrQuotaExceeded)
	if !good.exists("/zookeeper") {
		t.Error("the tree is broken")
	}
	runtime.ReadMemStats(&after)
	// A server, four connections, and their buffers use some megabytes.
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20+1000*uint64(len(script)) {
		t.Errorf("a script of %d bytes made the server allocate %d", len(script), used)
	}
	a.recover(opts)
}

// recover compares the state with that of a server that recovers it from the log.
func (a *scriptRunner) recover(opts Options) {
	var want, got []byte
	a.s.runOnLoop(func() { want = a.s.loop.tree.AppendSnapshot(nil) })
	a.s.Close()
	again := start(a.t, opts)
	again.runOnLoop(func() { got = again.loop.tree.AppendSnapshot(nil) })
	again.Close()
	if !bytes.Equal(got, want) {
		a.t.Errorf("recovered a state of %d bytes, want the previous state of %d bytes", len(got), len(want))
	}
}

// connect gives connection i the session of old, or a new session if that has ended.
func (a *scriptRunner) connect(i int, old *rawClient) {
	c := open(a.t, a.s)
	if old != nil {
		if c.handshake(old.resumption()); c.session.SessionID == 0 {
			c = open(a.t, a.s)
			old = nil
		}
	}
	if old == nil {
		c.handshake(wire.ConnectRequest{Timeout: 2000})
	}
	a.conns[i], a.unsent[i] = c, nil
	if i < scriptConns-1 {
		go io.Copy(io.Discard, c.br) // ends with the connection
	}
}

func (a *scriptRunner) step() {
	b := a.byte()
	i := int(b&3) % scriptConns
	switch b & (stepKinds*4 - 1) &^ 3 {
	case stepRaw:
		a.write(i, a.bytes())
	case stepFrame:
		op := a.op()
		a.write(i, request(op, a.bytes()...))
	case stepRequest:
		a.write(i, a.request())
	case stepPart:
		frame := a.request()
		n := int(a.byte()) % (len(frame) + 1)
		a.write(i, frame[:n])
		a.unsent[i] = frame[n:]
	case stepReset:
		a.conns[i].nc.(interface{ CloseAbrupt() }).CloseAbrupt()
	case stepResume:
		old := a.conns[i]
		old.nc.Close()
		a.connect(i, old)
	case stepHalf:
		a.conns[i].nc.(interface{ CloseWrite() error }).CloseWrite()
	case stepSleep:
		time.Sleep(time.Duration(a.byte()) * 20 * time.Millisecond)
	}
}

// write writes the rest of the last frame, and b. It ignores errors: the server may have closed
// the connection, or stopped reading from it.
func (a *scriptRunner) write(i int, b []byte) {
	nc := a.conns[i].nc
	nc.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = nc.Write(append(a.unsent[i], b...))
	a.unsent[i] = nil
}

func (a *scriptRunner) op() wire.OpCode {
	ops := scriptOps()
	return ops[int(a.byte())%len(ops)]
}

// request returns a well-formed request.
func (a *scriptRunner) request() []byte {
	op, where, variant := a.op(), a.byte(), a.byte()
	paths := []string{"/", "/a", "/a/b", "/c", "/c/d-", "/zookeeper/config", "a//", ""}
	rec := record(op, paths[int(where)%len(paths)], variant)
	return wire.AppendRequest(nil, int32(variant), op, rec)
}

// record returns the body of a request, nil if it has none.
func record(op wire.OpCode, path string, variant byte) wire.Record {
	watch, version := variant&1 != 0, int32(variant%4)-1
	create := wire.CreateRequest{Path: path, Data: make([]byte, int(variant)*8), ACL: openACL(), Flags: wire.CreateMode(variant % 8)}
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		return &create
	case wire.OpCreateTTL:
		return &wire.CreateTTLRequest{Path: path, ACL: openACL(), Flags: wire.CreateMode(5 + variant%2), TTL: int64(variant) * 100}
	case wire.OpDelete:
		return &wire.DeleteRequest{Path: path, Version: version}
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		// These four requests have the same layout.
		return &wire.ExistsRequest{Path: path, Watch: watch}
	case wire.OpSetData:
		return &wire.SetDataRequest{Path: path, Data: create.Data, Version: version}
	case wire.OpSetACL:
		return &wire.SetACLRequest{Path: path, ACL: openACL(), Version: version}
	case wire.OpMulti:
		return &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCreate, Req: &create},
			{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Version: version}},
			{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path + "x", Version: -1}},
		}[:1+variant%3]}
	case wire.OpRemoveWatches, wire.OpCheckWatches:
		return &wire.RemoveWatchesRequest{Path: path, Type: wire.WatcherType(variant % 7)}
	case wire.OpAddWatch:
		return &wire.AddWatchRequest{Path: path, Mode: wire.AddWatchMode(variant % 3)}
	case wire.OpSetWatches:
		return &wire.SetWatches{RelativeZxid: int64(variant), DataWatches: []string{path}, ExistWatches: []string{path}, ChildWatches: []string{path}}
	case wire.OpAuth:
		return &wire.AuthPacket{Scheme: []string{"digest", "world", "ip", "sasl"}[variant%4], Auth: []byte("u:p")}
	case wire.OpGetACL, wire.OpSync, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber:
		return &wire.SyncRequest{Path: path}
	}
	return rawBody(jute.AppendInt32(jute.AppendString(nil, path), int32(variant)))
}

// rawBody is a record of arbitrary bytes.
type rawBody []byte

// Decode implements wire.Record.
func (rawBody) Decode(r *jute.Reader) { r.Failf("not to be read") }

// Append appends the bytes.
func (b rawBody) Append(to []byte) []byte { return append(to, b...) }
