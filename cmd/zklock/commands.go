package main

import (
	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/bench"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/doctor"
	"github.com/zklock/zklock/cmd/zklock/internal/hold"
	"github.com/zklock/zklock/cmd/zklock/internal/locks"
	"github.com/zklock/zklock/cmd/zklock/internal/serve"
)

// commands returns the groups of commands, in the order of the help.
func commands(a *cli.App) []cli.Group {
	return []cli.Group{
		{ID: "hold", Title: "Hold locks:", Commands: []*cobra.Command{
			hold.Run(a),
			hold.Lock(a),
		}},
		{ID: "inspect", Title: "Inspect locks:", Commands: []*cobra.Command{
			locks.List(a),
			locks.Show(a),
			locks.Top(a),
			serve.UI(a),
			locks.Verify(a),
		}},
		{ID: "admin", Title: "Change locks:", Commands: []*cobra.Command{
			locks.Revoke(a),
			locks.Break(a),
			locks.Resize(a),
		}},
		{ID: "servers", Title: "Servers:", Commands: []*cobra.Command{
			serve.Serve(a),
			doctor.Command(a),
			a.ContextCommand(),
			locks.GC(a),
			bench.Command(a),
		}},
	}
}
