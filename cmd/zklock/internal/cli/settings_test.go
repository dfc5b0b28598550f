package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/zk"
)

// TestSessionSettingsReachOptions checks flags, the environment, and a context.
func TestSessionSettingsReachOptions(t *testing.T) {
	values := map[string]string{"server-tick": "2s", "sync-heartbeat": "true", "keep-order": "true", "read-only": "true"}
	for name, set := range map[string]func(c *cobra.Command) error{
		"flags": func(c *cobra.Command) error {
			return c.ParseFlags([]string{"--server-tick", "2", "--sync-heartbeat", "--keep-order", "--read-only"})
		},
		"environment": func(c *cobra.Command) error {
			return FromEnvironment(c.Flags(), func(key string) string {
				return values[strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(key, "ZKLOCK_"), "_", "-"))]
			})
		},
		"context": func(c *cobra.Command) error { return apply(c.Flags(), "prod", config.Context(values)) },
	} {
		t.Run(name, func(t *testing.T) {
			var s Settings
			c := &cobra.Command{}
			s.ConnectionFlags(c.Flags())
			s.SessionFlags(c.Flags())
			if err := set(c); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(c.Flags()); err != nil {
				t.Fatal(err)
			}
			var hold zklock.Options
			s.holdOptions(&hold)
			if !hold.SyncHeartbeat || hold.ServerTick != 2*time.Second || !hold.KeepOrder {
				t.Errorf("options of a hold: %+v", hold)
			}
			var read zk.Options
			s.readOptions(&read)
			if !read.ReadOnly || !read.KeepOrder {
				t.Errorf("options of a reader: %+v", read)
			}
		})
	}
}

func TestCheckRefusesHeartbeatSettings(t *testing.T) {
	for _, args := range [][]string{{"--sync-heartbeat"}, {"--server-tick=-1s"}} {
		var s Settings
		c := &cobra.Command{}
		s.ConnectionFlags(c.Flags())
		s.SessionFlags(c.Flags())
		if err := c.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(c.Flags()); err == nil || ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "--server-tick") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
