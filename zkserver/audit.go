package zkserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// Bounds of the audit: what clients do must not fill the disk, nor hold up the loop.
const (
	auditRate   = 1000 // lines in a second, on the average; a burst has as many
	auditQueue  = 4096 // lines that wait to be written
	auditValue  = 1024 // bytes of a path, a list of users or an ACL
	auditFailed = "failure"
	auditDone   = "success"
)

// audit writes a line for each operation that changes something, for each that an ACL
// denied, and for each proof of identity, with the fields of ZooKeeper's audit log.
type audit struct {
	log    *slog.Logger
	lines  chan []slog.Attr // of capacity auditQueue; closed by the loop at its end
	tokens float64          // of the loop alone, as filled
	filled time.Duration
	// unfinished has who made requests that take several steps. It is the loop's alone.
	unfinished map[tree.ConnID]auditor
	skipped    atomic.Int64 // lines that were not written, and not told of yet
}

// startAudit begins the audit if the options ask for it.
func (s *Server) startAudit() {
	if !s.opts.Audit {
		return
	}
	s.audit = &audit{log: s.log, lines: make(chan []slog.Attr, auditQueue), tokens: auditRate, unfinished: make(map[tree.ConnID]auditor)}
	s.handlers.Add(1)
	go func() { // ends with endAudit; Shutdown and Close wait for it
		defer s.handlers.Done()
		s.audit.write()
	}()
	s.audit.enqueue([]slog.Attr{slog.String("operation", "serverStart"), slog.String("result", auditDone)})
}

// endAudit writes the last line and ends the audit. The loop calls it at its end.
func (s *Server) endAudit() {
	if s.audit == nil {
		return
	}
	s.audit.enqueue([]slog.Attr{slog.String("operation", "serverStop"), slog.String("result", "invoked")})
	close(s.audit.lines)
}

// write writes lines until there are no more to come. The loop does not wait for a log
// that is slow.
func (a *audit) write() {
	for line := range a.lines {
		if n := a.skipped.Swap(0); n > 0 {
			line = append(line, slog.Int64("not_logged", n))
		}
		a.log.LogAttrs(context.Background(), slog.LevelInfo, "audit", line...)
	}
}

// auditLine adds a line to the batch that is being filled, unless there were too many.
// It is written when the answers of the batch leave, and not at all if the log could
// not be synced.
func (s *Server) auditLine(line ...slog.Attr) {
	a, now := s.audit, s.elapsed()
	a.tokens = min(auditRate, a.tokens+auditRate*(now-a.filled).Seconds())
	a.filled = now
	if a.tokens < 1 {
		a.skipped.Add(1)
		return
	}
	a.tokens--
	b := &s.loop.filling
	b.audits = append(b.audits, line)
}

// enqueue has a line written, unless the log is too slow for it.
func (a *audit) enqueue(line []slog.Attr) {
	select {
	case a.lines <- line:
	default:
		a.skipped.Add(1)
	}
}

// auditor is who made a request, as it was before: one that is refused may lose its
// connection.
type auditor struct {
	session int64
	users   []string
	frame   []byte // of a request that is not finished
}

// auditStep is auditRequest for a request that may take several steps: the answer comes
// with the last one, which has no frame.
func (s *Server) auditStep(c *conn, who auditor, frame []byte, sends int) {
	switch {
	case c.unfinished && frame != nil:
		who.frame = bytes.Clone(frame)
		s.audit.unfinished[c.id] = who
	case c.unfinished:
	case frame == nil:
		who = s.audit.unfinished[c.id]
		delete(s.audit.unfinished, c.id)
		s.auditRequest(c, who, who.frame, sends)
	default:
		s.auditRequest(c, who, frame, sends)
	}
}

// auditor returns who is behind c.
func (s *Server) auditor(c *conn) (who auditor) {
	if s.audit != nil {
		who.session, who.users = s.loop.tree.Who(c.id)
	}
	return who
}

// auditRequest has lines written for a request of c that was applied; sends is how many
// frames there were before.
func (s *Server) auditRequest(c *conn, who auditor, frame []byte, sends int) {
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	if h.Decode(r); r.Err() != nil {
		return
	}
	answer, ok := s.lastAnswer(c, sends)
	if !ok {
		return
	}
	if h.Op == wire.OpAuth || h.Op == wire.OpSASL {
		s.auditProof(c, who, h.Op, answer.Err)
		return
	}
	req := wire.NewRequest(h.Op)
	if req == nil {
		return
	}
	if req.Decode(r); r.Err() != nil {
		return
	}
	if m, ok := req.(*wire.MultiRequest); ok {
		s.auditMulti(c, who, m, answer)
		return
	}
	s.auditOperation(c, who, h.Op, req, answer.Err)
}

// answered is the answer to a request.
type answered struct {
	wire.ReplyHeader
	body *jute.Reader
}

// lastAnswer finds the answer to the request of c that was applied last.
func (s *Server) lastAnswer(c *conn, sends int) (a answered, ok bool) {
	for _, send := range s.loop.out.Sends[min(sends, len(s.loop.out.Sends)):] {
		if send.Conn != c.id || len(send.Frame) < 4 {
			continue
		}
		r := jute.NewReader(send.Frame[4:])
		var h wire.ReplyHeader
		if h.Decode(r); r.Err() == nil && h.Xid != wire.XidEvent {
			a, ok = answered{h, r}, true
		}
	}
	return a, ok
}

// auditMulti has a line written for each operation of a transaction.
func (s *Server) auditMulti(c *conn, who auditor, m *wire.MultiRequest, a answered) {
	var resp wire.MultiResponse
	if a.Err == wire.ErrOK {
		resp.Decode(a.body)
	}
	failed := false
	for _, res := range resp.Results {
		failed = failed || res.Err != wire.ErrOK
	}
	for i, op := range m.Ops {
		code := a.Err
		if i < len(resp.Results) {
			code = resp.Results[i].Err
		}
		if failed && code == wire.ErrOK { // it would have succeeded, but for another one
			code = wire.ErrRuntimeInconsistency
		}
		s.auditOperation(c, who, op.Op, op.Req, code)
	}
}

// auditOperation has a line written for an operation if it changes something or was denied.
func (s *Server) auditOperation(c *conn, who auditor, op wire.OpCode, req wire.Record, code wire.ErrCode) {
	name, more := auditName(op, req)
	switch {
	case name != "":
	case code == wire.ErrNoAuth:
		name = op.String()
	default:
		return
	}
	line := s.auditHead(c, who, name)
	if path, ok := pathOf(req); ok {
		line = append(line, slog.String("znode", bounded(legible.Path(path[:min(len(path), auditValue)]))))
	}
	line = append(line, more...)
	s.auditLine(append(line, auditResult(code)...)...)
}

// auditProof has a line written for a proof of identity, without what was proved by.
func (s *Server) auditProof(c *conn, who auditor, op wire.OpCode, code wire.ErrCode) {
	if session, users := s.loop.tree.Who(c.id); session != 0 {
		who.users = users // with the one that was proved
	}
	line := s.auditHead(c, who, op.String())
	s.auditLine(append(line, auditResult(code)...)...)
}

// auditHead is how a line begins.
func (s *Server) auditHead(c *conn, who auditor, operation string) []slog.Attr {
	line := []slog.Attr{slog.String("session", fmt.Sprintf("0x%x", who.session)), slog.String("user", bounded(strings.Join(who.users, ",")))}
	if addr := c.peer.addr(); addr.IsValid() {
		line = append(line, slog.String("ip", addr.String()))
	}
	return append(line, slog.String("operation", operation))
}

// auditResult is how a line ends.
func auditResult(code wire.ErrCode) []slog.Attr {
	if code == wire.ErrOK {
		return []slog.Attr{slog.String("result", auditDone)}
	}
	return []slog.Attr{slog.String("result", auditFailed), slog.Int("error", int(code))}
}

// auditName is ZooKeeper's name for an operation that changes something, and what a line
// says of it besides; "" for others.
func auditName(op wire.OpCode, req wire.Record) (string, []slog.Attr) {
	switch q := req.(type) {
	case *wire.CreateRequest:
		return "create", []slog.Attr{slog.String("znode_type", znodeType(op, q.Flags))}
	case *wire.CreateTTLRequest:
		return "create", []slog.Attr{slog.String("znode_type", znodeType(op, q.Flags))}
	case *wire.DeleteRequest:
		return "delete", nil
	case *wire.SetDataRequest:
		return "setData", nil
	case *wire.SetACLRequest:
		return "setAcl", []slog.Attr{slog.String("acl", aclText(q.ACL))}
	}
	if op == wire.OpReconfig {
		return "reconfig", nil
	}
	if op == wire.OpCloseSession {
		return "closeSession", nil
	}
	return "", nil
}

// znodeType is ZooKeeper's name for a kind of znode.
func znodeType(op wire.OpCode, mode wire.CreateMode) string {
	kind := "persistent"
	switch {
	case op == wire.OpCreateContainer || mode.Container():
		return "container"
	case mode == wire.ModeEphemeral, mode == wire.ModeEphemeralSequential:
		kind = "ephemeral"
	case mode.TTL():
		kind = "persistent_with_ttl"
	}
	if mode.Sequential() {
		kind += "_sequential"
	}
	return kind
}

// aclText is a list of permissions with its digests hidden.
func aclText(list []wire.ACL) string {
	var all []string
	size := 0
	for _, a := range list {
		if size > auditValue {
			break
		}
		id := a.ID
		if a.Scheme == "digest" {
			user, _, _ := strings.Cut(id, ":")
			id = user + ":x"
		}
		text := fmt.Sprintf("%s:%s:%s", a.Scheme, id[:min(len(id), auditValue)], permText(a.Perms))
		size += len(text)
		all = append(all, text)
	}
	return bounded(strings.Join(all, ","))
}

// permText is ZooKeeper's text for permissions.
func permText(perms wire.Perm) string {
	var b strings.Builder
	for _, p := range []struct {
		bit  wire.Perm
		text byte
	}{{wire.PermCreate, 'c'}, {wire.PermDelete, 'd'}, {wire.PermRead, 'r'}, {wire.PermWrite, 'w'}, {wire.PermAdmin, 'a'}} {
		if perms&p.bit != 0 {
			b.WriteByte(p.text)
		}
	}
	return b.String()
}

// bounded cuts a value that is long, and makes it legible.
func bounded(text string) string {
	if len(text) > auditValue {
		text = text[:auditValue] + "..."
	}
	return legible.Text(text)
}

// pathOf is the path that a request is about.
func pathOf(req wire.Record) (string, bool) {
	switch q := req.(type) {
	case *wire.CreateRequest:
		return q.Path, true
	case *wire.CreateTTLRequest:
		return q.Path, true
	case *wire.DeleteRequest:
		return q.Path, true
	case *wire.SetDataRequest:
		return q.Path, true
	case *wire.SetACLRequest:
		return q.Path, true
	case *wire.GetDataRequest:
		return q.Path, true
	case *wire.GetChildrenRequest:
		return q.Path, true
	case *wire.GetChildren2Request:
		return q.Path, true
	case *wire.ExistsRequest:
		return q.Path, true
	case *wire.GetACLRequest:
		return q.Path, true
	}
	return "", false
}
