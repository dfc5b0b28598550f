//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/zktest"
)

// TestMain lets the test binary be the command, its local servers, watchdogs, and keepers.
func TestMain(m *testing.M) {
	command := func() { os.Exit(cli.Main(os.Args[1:], commands)) }
	testscript.Main(m, map[string]func(){"zklock": command, process.WatchdogName: command})
}

// TestScripts runs the scripts in testdata/script. Each has its own local server, which it stops
// at the end.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("ZKLOCK_HOME", home)
			env.Setenv("ZKLOCK_IDLE", "30s")
			env.Setenv("HOME", env.WorkDir)
			env.Defer(func() { stopServer(home) })
			others := &others{home: home}
			env.Values[othersKey{}] = others
			env.Values[oldServerKey{}] = new(*zktest.Server)
			env.Defer(others.close)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"waitfor":      waitFor,
			"waitgone":     waitGone,
			"signal":       signalProcess,
			"deletelock":   deleteLock,
			"znode":        znode,
			"within":       within,
			"code":         exitCode,
			"less":         less,
			"readvar":      readVar,
			"waitline":     waitLine,
			"terminal":     terminal,
			"screens":      screens,
			"metrics":      metrics,
			"page":         page,
			"certificates": certificates(t),
			"lockdown":     lockdown,
			"oldserver":    oldServer,
		},
		Condition: condition,
	})
}
