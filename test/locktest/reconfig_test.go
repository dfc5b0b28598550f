package locktest

import (
	"errors"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// TestReconfig removes a server from an ensemble, adds it again, and replaces the list.
func TestReconfig(t *testing.T) {
	ensemble := harness.StartEnsemble(t, 3, harness.ServerConfig{ReconfigEnabled: true, Extra: map[string]string{"skipACL": "yes"}})
	ctx := t.Context()
	leader, err := ensemble.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := zk.Dial(ctx, leader.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	members := func(config []byte) (all []string) {
		for line := range strings.Lines(string(config)) {
			if strings.HasPrefix(line, "server.") {
				all = append(all, strings.TrimSpace(line))
			}
		}
		return all
	}
	config, _, err := c.GetConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := members(config)
	followers, err := ensemble.WaitFollowers(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	follower := followers[0]
	number := string(rune('0' + follower.ID()))
	var itself string
	for _, m := range all {
		if strings.HasPrefix(m, "server."+number+"=") {
			itself = m
		}
	}
	if !strings.Contains(itself, ";") {
		itself += ";" + follower.Addr() // the configuration file has the client port on another line
	}
	if _, _, err := c.IncrementalReconfig(ctx, []string{"server.9=nonsense"}, nil, zk.AnyVersion); !errors.Is(err, zk.ErrInvalidMembers) {
		t.Errorf("added a malformed member: %v", err)
	}
	if _, _, err := c.IncrementalReconfig(ctx, nil, []string{number}, 1<<40); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("changed another version of the configuration: %v", err)
	}
	for _, step := range []struct {
		what   string
		change func() ([]byte, zk.Stat, error)
		want   int
	}{
		{"leave", func() ([]byte, zk.Stat, error) {
			return c.IncrementalReconfig(ctx, nil, []string{number}, zk.AnyVersion)
		}, 2},
		{"join", func() ([]byte, zk.Stat, error) {
			return c.IncrementalReconfig(ctx, []string{itself}, nil, zk.AnyVersion)
		}, 3},
		{"replace", func() ([]byte, zk.Stat, error) { return c.Reconfig(ctx, all, zk.AnyVersion) }, 3},
	} {
		config, stat, err := step.change()
		if err != nil || len(members(config)) != step.want {
			t.Fatalf("%s: %q, %v", step.what, config, err)
		}
		read, now, err := c.GetConfig(ctx)
		if err != nil || string(read) != string(config) || now.Mzxid != stat.Mzxid {
			t.Errorf("%s: the configuration is %q, %v", step.what, read, err)
		}
	}
}
