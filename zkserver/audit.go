package zkserver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// Limits of the audit log: clients must not fill the disk or delay the loop.
const (
	auditRate   = 1000 // lines a second on average, and lines in a burst
	auditQueue  = 4096 // lines that wait to be written
	auditValue  = 1024 // bytes of a path, a list of users, or an ACL
	auditUser   = 128  // bytes of the name of a user
	auditUsers  = 16   // users of a line; of more, the first and the last ones
	auditCreate = "create"
	auditFailed = "failure"
	auditDone   = "success"
)

// audit logs a line for each operation that changes something, for each operation that an
// ACL denied, and for each authentication, with the fields of ZooKeeper's audit log.
type audit struct {
	log    *slog.Logger
	lines  chan []slog.Attr // of capacity auditQueue; closed by the loop at its end
	tokens float64          // used only by the loop, as filled is
	filled time.Duration
	// pending maps connections to the requesters of requests that take several steps. Only
	// the loop uses it.
	pending map[tree.ConnID]requester
	skipped atomic.Int64 // lines that were dropped and not yet reported
}

// startAudit starts the audit log if the options enable it.
func (s *Server) startAudit() {
	if !s.opts.Audit {
		return
	}
	s.audit = &audit{log: s.log, lines: make(chan []slog.Attr, auditQueue), tokens: auditRate, pending: make(map[tree.ConnID]requester)}
	s.handlers.Add(1)
	go func() { // ends with endAudit; Shutdown and Close wait for it
		defer s.handlers.Done()
		s.audit.write()
	}()
	s.audit.enqueue([]slog.Attr{slog.String("operation", "serverStart"), slog.String("result", auditDone)})
}

// endAudit writes the last line and ends the audit log. The loop calls it at its end.
func (s *Server) endAudit() {
	if s.audit == nil {
		return
	}
	s.audit.enqueue([]slog.Attr{slog.String("operation", "serverStop"), slog.String("result", "invoked")})
	close(s.audit.lines)
}

// write writes lines until the channel is closed. The loop does not wait for a slow log.
func (a *audit) write() {
	for line := range a.lines {
		if n := a.skipped.Swap(0); n > 0 {
			line = append(line, slog.Int64("not_logged", n))
		}
		a.log.LogAttrs(context.Background(), slog.LevelInfo, "audit", line...)
	}
}

// auditLine adds the line that build returns to the batch being filled, unless there were
// too many. It is written when the answers of the batch leave, and dropped if the log
// cannot be synced.
func (s *Server) auditLine(build func() []slog.Attr) {
	a, now := s.audit, s.elapsed()
	a.tokens = min(auditRate, a.tokens+auditRate*(now-a.filled).Seconds())
	a.filled = now
	if a.tokens < 1 {
		a.skipped.Add(1)
		return
	}
	a.tokens--
	b := &s.loop.filling
	b.audits = append(b.audits, build())
}

// enqueue passes a line to the writer, and drops it if the log is too slow.
func (a *audit) enqueue(line []slog.Attr) {
	select {
	case a.lines <- line:
	default:
		a.skipped.Add(1)
	}
}

// requester identifies the client that made a request, as it was before the request: a
// refused request may end the connection.
type requester struct {
	session int64
	users   []wire.ClientInfo
	text    string // of the users, once a line was built
	frame   []byte // of a request that is not finished
}

// auditStep is auditRequest for a request that may take several steps: the answer comes
// with the last step, which has no frame.
func (s *Server) auditStep(c *conn, by requester, frame []byte, sends int) {
	switch {
	case c.phase == connContinuing && frame != nil:
		by.frame = bytes.Clone(frame)
		s.audit.pending[c.id] = by
	case c.phase == connContinuing:
	case frame == nil:
		by = s.audit.pending[c.id]
		delete(s.audit.pending, c.id)
		s.auditRequest(c, by, by.frame, sends)
	default:
		s.auditRequest(c, by, frame, sends)
	}
}

// requesterOf returns the session and the users of c.
func (s *Server) requesterOf(c *conn) (by requester) {
	if s.audit != nil {
		by.session, by.users = s.loop.tree.Identities(c.id)
	}
	return by
}

// auditRequest logs a request of c that was applied. sends is the number of frames in the
// output before it.
func (s *Server) auditRequest(c *conn, by requester, frame []byte, sends int) {
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	if h.Decode(r); r.Err() != nil {
		return
	}
	answer, ok := s.lastAnswer(c, h.Xid, sends)
	switch {
	case !ok && h.Op == wire.OpCloseSession:
		// The end of a session with many ephemeral znodes is answered later, and certain.
	case !ok:
		return
	case h.Op == wire.OpAuth || h.Op == wire.OpSASL:
		s.auditAuth(c, &by, h.Op, answer.Err)
		return
	}
	req := wire.NewRequest(h.Op)
	if req == nil {
		return
	}
	if req.Decode(r); r.Err() != nil {
		return
	}
	switch m := req.(type) {
	case *wire.MultiRequest:
		s.auditMulti(c, &by, m.Ops, answer)
	case *wire.MultiReadRequest:
		s.auditMulti(c, &by, m.Ops, answer)
	default:
		var resp wire.CreateResponse // each answer to a create begins with these fields
		if auditName(h.Op, req) == auditCreate && answer.Err == wire.ErrOK {
			resp.Decode(answer.body)
		}
		s.auditOperation(c, &by, h.Op, req, answer.Err, resp.Path)
	}
}

// answered is the answer to a request.
type answered struct {
	wire.ReplyHeader
	body *jute.Reader
}

// lastAnswer returns the answer to the last request of c that was applied, which had this
// xid. If that is the xid of events, the answer comes after the events of the request.
func (s *Server) lastAnswer(c *conn, xid int32, sends int) (a answered, ok bool) {
	for _, send := range s.loop.out.Sends[min(sends, len(s.loop.out.Sends)):] {
		if send.Conn != c.id || len(send.Frame) < 4 {
			continue
		}
		r := jute.NewReader(send.Frame[4:])
		var h wire.ReplyHeader
		if h.Decode(r); r.Err() == nil && h.Xid == xid {
			a, ok = answered{h, r}, true
		}
	}
	return a, ok
}

// auditMulti logs each operation of a transaction, or of a request with several reads.
func (s *Server) auditMulti(c *conn, by *requester, ops []wire.MultiOp, a answered) {
	var resp wire.MultiResponse
	if a.Err == wire.ErrOK {
		resp.Decode(a.body)
	}
	failed := false
	for _, res := range resp.Results {
		failed = failed || res.Err != wire.ErrOK
	}
	for i, op := range ops {
		code, created := a.Err, ""
		if i < len(resp.Results) {
			code, created = resp.Results[i].Err, createdPath(resp.Results[i].Resp)
		}
		if failed && code == wire.ErrOK { // it would have succeeded without the failed one
			code = wire.ErrRuntimeInconsistency
		}
		s.auditOperation(c, by, op.Op, op.Req, code, created)
	}
}

// createdPath returns the path in the result of a create in a multi; "" for other results.
func createdPath(result wire.Record) string {
	switch p := result.(type) {
	case *wire.CreateResponse:
		return p.Path
	case *wire.Create2Response:
		return p.Path
	}
	return ""
}

// auditOperation logs an operation that changes something or was denied. If it created a
// znode, created is the path: that in the request lacks the number of a sequential znode.
func (s *Server) auditOperation(
	c *conn, by *requester, op wire.OpCode, req wire.Record, code wire.ErrCode, created string,
) {
	name := auditName(op, req)
	switch {
	case name != "":
	case code == wire.ErrNoAuth, code == wire.ErrSessionClosedRequireSASL:
		name = op.String()
	default:
		return
	}
	s.auditLine(func() []slog.Attr {
		line := s.auditHead(c, by, name)
		if path, ok := pathOf(req); ok {
			path = cmp.Or(created, path)
			line = append(line, slog.Any("znode", auditPath(strings.Clone(path[:min(len(path), auditValue)]))))
		}
		line = append(line, auditDetails(op, req)...)
		return append(line, auditResult(code)...)
	})
}

// auditAuth logs an authentication, without its credentials. The line names the new
// identity first.
func (s *Server) auditAuth(c *conn, by *requester, op wire.OpCode, code wire.ErrCode) {
	s.auditLine(func() []slog.Attr {
		if session, users := s.loop.tree.Identities(c.id); session != 0 {
			before := len(by.users)
			if by.users = users; len(users) > before {
				by.users = slices.Concat(users[before:], users[:before])
			}
		}
		return append(s.auditHead(c, by, op.String()), auditResult(code)...)
	})
}

// auditHead returns the start of a line.
func (s *Server) auditHead(c *conn, by *requester, operation string) []slog.Attr {
	if by.text == "" {
		by.text = usersText(by.users)
	}
	line := []slog.Attr{slog.String("session", fmt.Sprintf("0x%x", by.session)), slog.String("user", by.text)}
	if addr := c.peer.addr(); addr.IsValid() {
		line = append(line, slog.String("ip", addr.String()))
	}
	return append(line, slog.String("operation", operation))
}

// usersText lists identities as scheme:name, because a name alone can look like that of
// another scheme. A name with a comma, for example, is quoted, so that it does not look
// like two.
func usersText(users []wire.ClientInfo) string {
	var all []string
	for i, u := range users {
		if len(users) > auditUsers && i >= auditUsers/2 && i < len(users)-auditUsers/2 {
			if i == auditUsers/2 {
				all = append(all, fmt.Sprintf("...%d more...", len(users)-auditUsers))
			}
			continue
		}
		all = append(all, strings.TrimSuffix(u.AuthScheme+":"+quoteName(u.User, auditUser), ":")) // the super user has no name
	}
	return strings.Join(all, ",")
}

// quoteName returns up to limit bytes of a name. It quotes a name that could look like another
// entry of a list.
func quoteName(name string, limit int) string {
	short := name[:min(len(name), limit)]
	switch {
	case legible.Text(short) != short:
		short = strconv.QuoteToASCII(short) // Quote keeps blank symbols and marks
	case strings.ContainsAny(short, `, "\`):
		short = strconv.Quote(short)
	}
	if len(name) > limit {
		short += "..."
	}
	return short
}

// auditResult returns the end of a line.
func auditResult(code wire.ErrCode) []slog.Attr {
	if code == wire.ErrOK {
		return []slog.Attr{slog.String("result", auditDone)}
	}
	return []slog.Attr{slog.String("result", auditFailed), slog.Int("error", int(code))}
}

// auditName returns ZooKeeper's name for an operation that changes something; "" for other
// operations.
func auditName(op wire.OpCode, req wire.Record) string {
	switch req.(type) {
	case *wire.CreateRequest, *wire.CreateTTLRequest:
		return auditCreate
	case *wire.DeleteRequest:
		return "delete"
	case *wire.SetDataRequest:
		return "setData"
	case *wire.SetACLRequest:
		return "setAcl"
	}
	if op == wire.OpReconfig {
		return "reconfig"
	}
	if op == wire.OpCloseSession {
		return "closeSession"
	}
	return ""
}

// auditPath is a path that the writer makes readable, because that takes long for a thousand paths
// of one transaction.
type auditPath string

func (p auditPath) LogValue() slog.Value {
	return slog.StringValue(truncateText(legible.Path(string(p))))
}

// auditDetails returns the additional fields of an operation.
func auditDetails(op wire.OpCode, req wire.Record) []slog.Attr {
	switch q := req.(type) {
	case *wire.CreateRequest:
		return []slog.Attr{slog.String("znode_type", znodeType(op, q.Flags))}
	case *wire.CreateTTLRequest:
		return []slog.Attr{slog.String("znode_type", znodeType(op, q.Flags))}
	case *wire.SetACLRequest:
		return []slog.Attr{slog.String("acl", formatACL(q.ACL))}
	}
	return nil
}

// znodeType returns ZooKeeper's name for a type of znode.
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

// formatACL returns the text of an access control list, without secrets.
func formatACL(list []wire.ACL) string {
	var all []string
	size := 0
	for _, a := range list {
		if size > auditValue {
			break
		}
		text := fmt.Sprintf("%s:%s:%s", quoteName(a.Scheme, auditUser), quoteName(publicID(a), auditValue), formatPerms(a.Perms))
		size += len(text)
		all = append(all, text)
	}
	return truncateText(strings.Join(all, ","))
}

// publicID returns the ID of an ACL entry as far as it is public: all of it only for schemes whose
// IDs never contain a secret. A client may write anything into the other IDs, such as a password
// into one of the scheme auth, which the server ignores.
func publicID(a wire.ACL) string {
	switch a.Scheme {
	case "world", "ip", "sasl", "x509":
		return a.ID
	case "digest":
		if user, _, paired := strings.Cut(a.ID, ":"); paired {
			return user + ":x"
		}
	}
	return ""
}

// formatPerms returns ZooKeeper's text for permissions.
func formatPerms(perms wire.Perm) string {
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

// truncateText cuts a long value and makes it printable.
func truncateText(text string) string {
	if len(text) > auditValue {
		text = text[:auditValue] + "..."
	}
	return legible.Text(text)
}

// pathOf returns the path of a request.
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
	case *wire.GetAllChildrenNumberRequest:
		return q.Path, true
	case *wire.CheckVersionRequest:
		return q.Path, true
	}
	return "", false
}
