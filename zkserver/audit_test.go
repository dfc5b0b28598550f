package zkserver

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// auditLines returns the lines of the audit in a log.
func auditLines(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		if _, line, ok := strings.Cut(strings.TrimSpace(line), " msg=audit "); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// audited starts a server with an audit log, and opens a session on it.
func audited(t *testing.T) (*Server, *memnet.Network, *rawClient, *logBuffer) {
	t.Helper()
	opts, log := testOptions(t), &logBuffer{}
	opts.Audit, opts.Logger = true, logTo(log)
	s, network := onNetwork(t, opts)
	c, ok := dialMem(t, network, "10.0.0.1:2181")
	if !ok {
		t.Fatal("no session")
	}
	return s, network, c, log
}

// TestAuditLogsChangesDenialsAndAuthentications checks that each change, denial, and
// authentication has a line with ZooKeeper's fields and without secrets.
func TestAuditLogsChangesDenialsAndAuthentications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network, c, log := audited(t)
		stranger, _ := dialMem(t, network, "10.0.0.1:2181")
		c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("ann:top-secret")})
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/a", Data: []byte("the-data"), ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}})
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()}, wire.ErrNodeExists)
		c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
		c.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/a", Version: -1, ACL: []wire.ACL{{Perms: wire.PermRead | wire.PermAdmin, Scheme: "digest", ID: "ann:thehashofthepassword"}}})
		stranger.do(wire.OpGetData, &wire.GetDataRequest{Path: "/a"}, wire.ErrNoAuth)
		stranger.do(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/a"}, wire.ErrNoAuth)
		stranger.do(wire.OpMultiRead, &wire.MultiReadRequest{Ops: []wire.MultiOp{
			{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/"}},
			{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: "/a"}},
		}})
		stranger.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: "/a", Version: -1}},
		}})
		stranger.do(wire.OpExists, &wire.ExistsRequest{Path: "/"})
		stranger.do(wire.OpDelete, &wire.DeleteRequest{Path: "/no\n\x1b[2Jsuch", Version: -1}, wire.ErrNoNode, wire.ErrBadArguments)
		stranger.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/e-", ACL: openACL(), Flags: wire.ModeEphemeralSequential}},
			{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/a", Version: -1}},
		}})
		sequential := &wire.CreateRequest{Path: "/e-", ACL: openACL(), Flags: wire.ModeEphemeralSequential}
		stranger.do(wire.OpCreate, sequential)
		stranger.do(wire.OpCreate2, sequential)
		stranger.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCreate, Req: sequential},
			{Op: wire.OpCreate2, Req: sequential},
		}})
		stranger.do(wire.OpAuth, &wire.AuthPacket{Scheme: "nonsense", Auth: []byte("top-secret")}, wire.ErrAuthFailed)
		c.do(wire.OpCloseSession, nil)
		s.Close()
		text := log.String()
		got := auditLines(text)
		want := []string{
			`operation=serverStart result=success`,
			`operation=auth result=success`,
			`operation=create znode=/a znode_type=persistent result=success`,
			`operation=create znode=/a znode_type=persistent result=failure error=-110`,
			`operation=setData znode=/a result=success`,
			`operation=setAcl znode=/a acl=digest:ann:x:ra result=success`,
			`operation=getData znode=/a result=failure error=-102`,
			`operation=getAllChildrenNumber znode=/a result=failure error=-102`,
			`operation=getChildren znode=/a result=failure error=-102`,
			`operation=check znode=/a result=failure error=-102`,
			`operation=delete znode=`,
			`operation=create znode=/e- znode_type=ephemeral_sequential result=failure`,
			`operation=setData znode=/a result=failure error=-102`,
			`operation=create znode=/e-0000000001 znode_type=ephemeral_sequential result=success`,
			`operation=create znode=/e-0000000002 znode_type=ephemeral_sequential result=success`,
			`operation=create znode=/e-0000000003 znode_type=ephemeral_sequential result=success`,
			`operation=create znode=/e-0000000004 znode_type=ephemeral_sequential result=success`,
			`operation=auth result=failure error=-115`,
			`operation=closeSession result=success`,
			`operation=serverStop result=invoked`,
		}
		if len(got) != len(want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("line %d is %q, want %q in it", i, got[i], want[i])
			}
		}
		if len(got) > 2 && (!strings.Contains(got[2], fmt.Sprintf("session=0x%x ", c.session.SessionID)) || !strings.Contains(got[2], ",digest:ann ") || !strings.Contains(got[2], " ip=")) {
			t.Errorf("%q does not name the session, the users and the address", got[2])
		}
		for _, secret := range []string{"top-secret", "the-data", "thehash", "\x1b"} {
			if strings.Contains(text, secret) {
				t.Errorf("the log has %q:\n%s", secret, text)
			}
		}
	})
}

// TestAuditLogsMissingIdentity checks that a read has a line if the server refuses it because
// the client has no identity.
func TestAuditLogsMissingIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, log := testOptions(t), &logBuffer{}
		opts.Audit, opts.Logger, opts.EnforceAuthSchemes = true, logTo(log), []string{"digest"}
		s := start(t, opts)
		login(t, s, time.Hour).do(wire.OpGetData, &wire.GetDataRequest{Path: "/"}, wire.ErrSessionClosedRequireSASL)
		s.Close()
		if text, want := log.String(), "operation=getData znode=/ result=failure error=-124"; !strings.Contains(text, want) {
			t.Errorf("no line with %q:\n%s", want, text)
		}
	})
}

// TestAuditDistinguishesSchemes: a user chooses the name of a digest identity. The line must not
// show it like an identity of another scheme, or like two identities.
func TestAuditDistinguishesSchemes(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, test := range []struct {
		users []wire.ClientInfo
		want  string
	}{
		{[]wire.ClientInfo{{AuthScheme: "ip", User: "10.0.0.1"}, {AuthScheme: "digest", User: "ann"}}, "ip:10.0.0.1,digest:ann"},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "CN=admin"}}, "digest:CN=admin"},
		{[]wire.ClientInfo{{AuthScheme: "x509", User: "CN=admin,O=ops"}}, `x509:"CN=admin,O=ops"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "a,x509:CN=admin"}}, `digest:"a,x509:CN=admin"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "a\",x509:b"}}, `digest:"a\",x509:b"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "a operation=delete"}}, `digest:"a operation=delete"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "a\n\u202eb\u200b"}}, `digest:"a\n\u202eb\u200b"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: "\u0301ü\u2800"}}, `digest:"\u0301\u00fc\u2800"`},
		{[]wire.ClientInfo{{AuthScheme: "sasl", User: "ü, b"}}, `sasl:"ü, b"`},
		{[]wire.ClientInfo{{AuthScheme: "digest", User: long}, {AuthScheme: "sasl", User: "bob"}}, "digest:" + long[:auditUser] + "...,sasl:bob"},
		{[]wire.ClientInfo{{AuthScheme: "super"}, {AuthScheme: "digest", User: "root"}}, "super,digest:root"},
	} {
		if got := usersText(test.users); got != test.want {
			t.Errorf("%q: %s, want %s", test.users, got, test.want)
		}
	}
}

// TestAuditOmitsUnsyncedChanges checks that a change whose sync failed has no line.
func TestAuditOmitsUnsyncedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 3)
		opts.Audit = true
		var log logBuffer
		opts.Logger = logTo(&log)
		s := start(t, opts)
		c := login(t, s, time.Minute)
		c.create("/kept", wire.ModePersistent)
		breakDisk(fs, memfs.OpSync, syscall.EIO)
		if err := c.tryCreate("/lost"); !closedError(err) {
			t.Errorf("a create whose sync failed: %v", err)
		}
		s.Close()
		got := strings.Join(auditLines(log.String()), "\n")
		if !strings.Contains(got, "znode=/kept ") || strings.Contains(got, "znode=/lost ") {
			t.Errorf("the audit is\n%s", got)
		}
	})
}

// TestAuditIsRateLimited checks that the audit omits lines of a busy client, and counts them.
func TestAuditIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c, log := audited(t)
		for range 3000 {
			c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/none", Version: -1}, wire.ErrNoNode)
		}
		time.Sleep(time.Second)
		c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/none", Version: -1}, wire.ErrNoNode)
		s.Close()
		got, left := auditLines(log.String()), 0
		for _, line := range got {
			if _, n, ok := strings.Cut(line, "not_logged="); ok {
				n, err := strconv.Atoi(n)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				left += n
			}
		}
		// The server writes the first and the last line for itself.
		if len(got) > auditRate+3 || len(got)-2+left != 3001 {
			t.Errorf("%d lines, and %d left out, of 3001 operations", len(got)-2, left)
		}
	})
}

// TestAuditSeesEveryRequest checks that a client cannot hide a change from the audit log by
// using the xid of events, or by a session that takes long to close.
func TestAuditSeesEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c, log := audited(t)
		c.do(wire.OpExists, &wire.ExistsRequest{Path: "/hidden", Watch: true}, wire.ErrNoNode)
		c.write(wire.AppendRequest(nil, wire.XidEvent, wire.OpCreate, &wire.CreateRequest{Path: "/hidden", ACL: openACL()}))
		for range 2 { // the event and the answer
			if _, err := c.frame(); err != nil {
				t.Fatal(err)
			}
		}
		const many = 6000
		c.createInMultis(many, wire.ModeEphemeral, func(i int) string { return fmt.Sprint("/e", i) })
		for range 8 { // the creates used up the rate; the reads keep the session
			time.Sleep(time.Second)
			c.exists("/")
		}
		c.do(wire.OpCloseSession, nil)
		s.Close()
		text := strings.Join(auditLines(log.String()), "\n")
		for _, want := range []string{"operation=create znode=/hidden ", "operation=closeSession result=success"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the audit has %d lines with %q, want 1", strings.Count(text, want), want)
			}
		}
	})
}

// TestAuditNamesNewIdentity: the client has many identities. The line about an authentication
// names the new one, and lists of identities and permissions stay short and unambiguous.
func TestAuditNamesNewIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c, log := audited(t)
		for i := range 40 {
			c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte(strings.Repeat("\x01", 250) + fmt.Sprint(i) + ":secret")})
		}
		c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("alice:secret")})
		c.create("/a", wire.ModePersistent)
		c.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/a", Version: -1, ACL: []wire.ACL{{Perms: wire.PermRead, Scheme: "digest", ID: "q,world=x:hash"}}})
		s.Close()
		got := auditLines(log.String())
		if line := got[41]; !strings.Contains(line, "user=\"digest:alice,") && !strings.Contains(line, "user=digest:alice,") {
			t.Errorf("the line of an authentication does not begin with the identity: %.200q", line)
		}
		if line := got[43]; !strings.Contains(line, `digest:\"q,world=x:x\":r`) {
			t.Errorf("the list of permissions is ambiguous: %q", line[max(0, len(line)-120):])
		}
		for _, line := range got {
			if len(line) > 64<<10 {
				t.Errorf("a line has %d bytes", len(line))
			}
		}
	})
}

// TestAuditPrintsOnlyPublicIDsOfACL: a client may write a password into the ID of an ACL entry, also
// into an ACL that the server refuses.
func TestAuditPrintsOnlyPublicIDsOfACL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c, log := audited(t)
		c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("ann:top-secret")})
		c.create("/a", wire.ModePersistent)
		tests := []struct{ scheme, id, want string }{
			{"auth", "ann:top-secret", "auth::r"},
			{"auth", "", "auth::r"},
			{"digest", "ann:top-secret", "digest:ann:x:r"},
			{"digest", "ann:top-secret:more", "digest:ann:x:r"},
			{"digest", "top-secret", "digest::r"},
			{"Digest", "ann:top-secret", "Digest::r"},
			{"super", "super:top-secret", "super::r"},
			{"", "ann:top-secret", "::r"},
			{"world", "anyone", "world:anyone:r"},
			{"ip", "10.0.0.0/8", "ip:10.0.0.0/8:r"},
			{"sasl", "ann@EXAMPLE", "sasl:ann@EXAMPLE:r"},
			{"x509", "CN=ann", "x509:CN=ann:r"},
		}
		for _, tt := range tests {
			list := []wire.ACL{{Perms: wire.PermRead, Scheme: tt.scheme, ID: tt.id}, {Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
			c.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/a", Version: -1, ACL: list}, wire.ErrInvalidACL)
		}
		s.Close()
		text := log.String()
		lines := auditLines(text)[3:]
		for i, tt := range tests {
			if _, got, _ := strings.Cut(lines[i], " acl="); !strings.HasPrefix(strings.Trim(got, `"`), tt.want+",world:anyone:cdrwa") {
				t.Errorf("%s:%s: %q, want %q", tt.scheme, tt.id, lines[i], tt.want)
			}
		}
		if strings.Contains(text, "top-secret") {
			t.Errorf("the log has a secret:\n%s", text)
		}
	})
}
