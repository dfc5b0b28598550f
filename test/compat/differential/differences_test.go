package differential

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// probeTimeout limits the wait for a reply of a server that may have ended.
const probeTimeout = 30 * time.Second

// probe is a list of requests. The reply to the last one shows a deliberate difference.
type probe struct {
	name       string // of the difference
	requests   []wire.MultiOp
	java, ours string
}

// body is an encoded body of a request.
type body []byte

func (body) Decode(*jute.Reader)      {}
func (b body) Append(a []byte) []byte { return append(a, b...) }

// text encodes a text, followed by other bytes.
func text(s string, rest ...byte) body { return append(jute.AppendString(nil, s), rest...) }

// probes returns a probe for each difference that scripts avoid.
func probes() []probe {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	mk := func(path, data string) wire.MultiOp {
		return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, Data: []byte(data), ACL: open}}
	}
	allow := func(path string, perm wire.Perm) wire.MultiOp {
		acl := []wire.ACL{{Perms: perm, Scheme: "world", ID: "anyone"}}
		req := &wire.SetACLRequest{Path: path, ACL: acl, Version: -1}
		return wire.MultiOp{Op: wire.OpSetACL, Req: req}
	}
	noTTL := &wire.CreateTTLRequest{Path: "/ttl", ACL: open, Flags: wire.ModePersistent, TTL: -1}
	var deep []wire.MultiOp
	for n := 1; n <= 513; n++ {
		deep = append(deep, mk(strings.Repeat("/d", n), ""))
	}
	return []probe{
		{"deep paths", deep, "OK", "BadArguments"},
		{"commands among servers", []wire.MultiOp{
			{Op: wire.OpCreateContainer, Req: &wire.CreateRequest{Path: "/c", ACL: open, Flags: wire.ModeContainer}},
			{Op: wire.OpDeleteContainer, Req: text("/c")},
		}, "OK", "Unimplemented"},
		{"strict messages", []wire.MultiOp{{Op: wire.OpExists, Req: text("/", 2)}}, "OK", "MarshallingError"},
		{"strict messages", []wire.MultiOp{{Op: wire.OpGetEphemerals, Req: body{255, 255, 255, 255}}}, "OK", "MarshallingError"},
		{"strict messages", []wire.MultiOp{{Op: wire.OpSetACL, Req: text("/", 255, 255, 255, 254, 255, 255, 255, 255)}}, "InvalidACL", "MarshallingError"},
		{"texts as bytes", []wire.MultiOp{{Op: wire.OpSync, Req: text("/\xff")}}, "OK /\ufffd", "OK /\xff"},
		{"createTTL without a time", []wire.MultiOp{{Op: wire.OpCreateTTL, Req: noTTL}}, "dead", "BadArguments"},
		{"quotas of closed nodes", []wire.MultiOp{
			{Op: wire.OpCreate, Req: &wire.CreateRequest{
				Path: "/closed", ACL: []wire.ACL{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}},
			}},
			mk("/zookeeper/quota/closed", ""), mk("/zookeeper/quota/closed/zookeeper_limits", "count=1"),
		}, "OK", "NoAuth"},
		{"usage of closed nodes", []wire.MultiOp{
			mk("/usage", ""), mk("/zookeeper/quota/usage", ""),
			mk("/zookeeper/quota/usage/zookeeper_limits", "count=1"),
			mk("/zookeeper/quota/usage/zookeeper_stats", "count=0"), allow("/usage", wire.PermAdmin),
			{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/zookeeper/quota/usage/zookeeper_stats"}},
		}, "OK", "NoAuth"},
		{"watches of hidden changes", []wire.MultiOp{
			mk("/hidden", ""), {Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/hidden", Watch: true}},
			allow("/hidden", wire.PermWrite),
			{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/hidden", Version: -1}},
			{Op: wire.OpCheckWatches, Req: &wire.CheckWatchesRequest{
				Path: "/hidden", Type: wire.WatcherData,
			}},
		}, "NoWatcher", "OK"},
		{"invalid quotas", []wire.MultiOp{
			mk("/q", ""), mk("/zookeeper/quota/q", ""), mk("/zookeeper/quota/q/zookeeper_limits", "count=1"),
			mk("/zookeeper/quota/q/zookeeper_stats", "x"), {Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/zookeeper/quota/q/zookeeper_stats", Data: []byte("x"), Version: -1}},
			mk("/q/x", ""),
		}, "dead", "OK"},
	}
}

// TestListedDifferencesExist checks that the servers still differ. Otherwise the table could hide
// bugs.
func TestListedDifferencesExist(t *testing.T) {
	if options.replay != "" {
		t.Skip("nothing to run")
	}
	t.Parallel()
	var p *pair
	for _, pr := range probes() {
		if !slices.ContainsFunc(Differences(), func(d Difference) bool { return d.Name == pr.name }) {
			t.Errorf("%q is not in the table", pr.name)
		}
		if p == nil {
			var err error
			if p, err = newPair(t, Setup{}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := p.probe(1, pr.requests); err != nil || got != pr.ours {
			t.Errorf("%s, ours: %q, %v, want %q", pr.name, got, err, pr.ours)
		}
		got, err := p.probe(0, pr.requests)
		if err != nil || got != pr.java {
			t.Errorf("%s, java: %q, %v, want %q", pr.name, got, err, pr.java)
		}
		if got == "dead" {
			p = nil
		}
	}
}

// probe sends requests to one server and describes the last reply.
func (p *pair) probe(i int, requests []wire.MultiOp) (string, error) {
	c, err := dialConn(p.dials[i])
	if err != nil {
		return "", err
	}
	defer c.Close()
	hello := wire.ConnectRequest{Timeout: 30_000, Password: make([]byte, 16), HasReadOnly: true}
	if err := c.write(wire.AppendRecord(nil, &hello)); err != nil {
		return "", err
	}
	if b, err := c.raw(); err != nil || b == nil {
		return "", fmt.Errorf("handshake: %w", err)
	}
	got := ""
	for _, op := range requests {
		if err := c.write(wire.AppendRequest(nil, 1, op.Op, op.Req)); err != nil {
			return "", err
		}
		if err := c.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
			return "", err
		}
		f, err := c.next()
		if f.closed || errors.Is(err, errSilent) || errors.Is(err, os.ErrDeadlineExceeded) {
			return "dead", nil
		}
		got = f.header.Err.Name()
		if op.Op == wire.OpSync {
			got += " " + jute.NewReader(f.body).String()
		}
	}
	return got, nil
}

// TestDifferencesAreDocumented compares the table with the package documentation of internal/tree.
func TestDifferencesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../internal/tree/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(doc), "# Differences from Java")
	if !found {
		t.Fatal("no section about differences")
	}
	list = strings.Join(strings.Fields(strings.ReplaceAll(list, "//", " ")), " ")
	for _, d := range Differences() {
		if !strings.Contains(list, d.Documented) || d.Documented == "" {
			t.Errorf("%s: the documentation does not contain %q", d.Name, d.Documented)
		}
	}
	if bullets := strings.Count(list, " - "); bullets < len(Differences()) {
		t.Errorf("%d differences documented, %d in the table", bullets, len(Differences()))
	}
}
