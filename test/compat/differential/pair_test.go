package differential

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
)

// superSecret is the credential of the super user.
const superSecret = "super:secret"

// Setup is how both servers of a pair are configured.
type Setup struct {
	Name string
	// Waiting makes timeouts and collection intervals short. Otherwise nothing expires during a
	// script.
	Waiting bool
	// Strict enables the reconfiguration, which a standalone server refuses with another error,
	// and enforces quotas.
	Strict bool
}

// pair is a ZooKeeper server and an embedded server that have received the same requests.
type pair struct {
	java  *harness.Server
	setup Setup
	dials [2]func() (net.Conn, error) // Java's, ours
	bases [2]int64                    // the last transaction ids at the start
	roots atomic.Int64                // the number of scripts' roots
}

// limits returns the limits of session timeouts and the interval of container checks, in ms.
func (s Setup) limits() (shortest, longest, collect int) {
	if s.Waiting {
		return 200, 120_000, 50
	}
	return 20_000, 60_000, 3_600_000
}

// newPair starts both servers.
func newPair(tb testing.TB, setup Setup) (*pair, error) {
	shortest, longest, collect := setup.limits()
	digest := superDigest()
	enforce := fmt.Sprint(setup.Strict)
	java := harness.StartServer(tb, harness.ServerConfig{
		Release: harness.Release39, TickTime: 50 * time.Millisecond, SuperDigest: digest, ReconfigEnabled: setup.Strict,
		Extra: map[string]string{
			"minSessionTimeout": fmt.Sprint(shortest), "maxSessionTimeout": fmt.Sprint(longest),
			"enforceQuota": enforce,
		},
		JavaFlags: []string{fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", collect), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"},
	})
	ours := harness.Serve(tb, zkserver.Options{
		ExtendedTypes: true, SuperDigest: digest, ReconfigEnabled: setup.Strict,
		TickTime: 50 * time.Millisecond, MinSessionTimeout: time.Duration(shortest) * time.Millisecond,
		MaxSessionTimeout:      time.Duration(longest) * time.Millisecond,
		ContainerCheckInterval: time.Duration(collect) * time.Millisecond, EnforceQuota: setup.Strict, MaxClientConns: -1, Logger: slog.New(slog.DiscardHandler),
	})
	p := &pair{setup: setup, java: java, dials: [2]func() (net.Conn, error){dialer(java.Addr()), dialer(ours)}}
	for i := range p.dials {
		admin, err := p.admin(i)
		if err != nil {
			return nil, err
		}
		f, err := admin.ask(wire.OpExists, &wire.ExistsRequest{Path: "/"})
		if err != nil {
			return nil, err
		}
		p.bases[i] = f.header.Zxid
		// A session that is left would expire later.
		if _, err := admin.ask(wire.OpCloseSession, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// superDigest returns the digest of superSecret.
func superDigest() string {
	sum := sha1.Sum([]byte(superSecret))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// dialer returns a function that connects to a server.
func dialer(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
}

// admin opens a session of the super user on one of the servers.
func (p *pair) admin(i int) (*conn, error) {
	c, err := dialConn(p.dials[i])
	if err != nil {
		return nil, err
	}
	q := wire.ConnectRequest{Timeout: 60_000, Password: make([]byte, 16), HasReadOnly: true}
	if err := c.write(wire.AppendRecord(nil, &q)); err != nil {
		return nil, err
	}
	b, err := c.raw()
	if err != nil || b == nil {
		return nil, fmt.Errorf("differential: admin's handshake: %w", err)
	}
	f, err := c.ask(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte(superSecret)})
	if err != nil || f.closed || f.header.Err != wire.ErrOK {
		return nil, fmt.Errorf("differential: admin's authentication: %v, %w", f.header.Err, err)
	}
	return c, nil
}

// sides returns the state of the next script on both servers.
func (p *pair) sides() (*[2]*side, error) {
	n := p.roots.Add(1)
	root := rootOf(int(n))
	var sides [2]*side
	for i := range sides {
		admin, err := p.admin(i)
		if err != nil {
			return nil, err
		}
		s := &side{name: [2]string{"java", "ours"}[i], dial: p.dials[i], admin: admin, root: root, unknown: 0x1234567890 + n, timeout: 30_000}
		s.zxids = zxids{exact: !p.setup.Waiting, base: p.bases[i]}
		f, err := admin.ask(wire.OpExists, &wire.ExistsRequest{Path: "/"})
		if err != nil {
			return nil, err
		}
		s.zxids.seen = []int64{f.header.Zxid}
		sides[i] = s
	}
	return &sides, nil
}

// cleanUp deletes the script's nodes, and closes its sessions and the admin's.
func (s *side) cleanUp() error {
	s.close()
	for _, c := range s.clients {
		if c.session == 0 {
			continue
		}
		if err := s.endSession(&c); err != nil {
			return err
		}
	}
	for _, root := range []string{s.root, "/zookeeper/quota" + s.root} {
		if err := s.removeAll(root); err != nil {
			return err
		}
	}
	// A script may have changed the ACLs of shared nodes.
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota"} {
		if _, err := s.admin.ask(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: open, Version: -1}); err != nil {
			return err
		}
	}
	if _, err := s.admin.ask(wire.OpCloseSession, nil); err != nil {
		return err
	}
	return s.admin.Close()
}

// endSession reconnects to a session and closes it.
func (s *side) endSession(c *client) error {
	conn, err := dialConn(s.dial)
	if err != nil {
		return err
	}
	defer conn.Close()
	q := s.connectRequest(c, &Handshake{Session: "own", Password: "right", Timeout: s.timeout})
	if err := conn.write(q); err != nil {
		return err
	}
	b, err := conn.raw()
	if err != nil || b == nil {
		return fmt.Errorf("differential: cannot close a session: %w", err)
	}
	var resp wire.ConnectResponse
	resp.Decode(jute.NewReader(b))
	if resp.SessionID == 0 {
		return nil // it had expired
	}
	f, err := conn.ask(wire.OpCloseSession, nil)
	if err == nil && !f.closed {
		s.zxids.wrote(f.header.Zxid)
	}
	return err
}

// removeAll deletes a node and all nodes below it.
func (s *side) removeAll(path string) error {
	names, err := s.children(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.removeAll(path + "/" + name); err != nil {
			return err
		}
	}
	_, err = s.admin.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1})
	return err
}
