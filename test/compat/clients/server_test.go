package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
)

// serveEnv makes this binary a server with the command line of ZooKeeper's.
const serveEnv = "ZKLOCK_TEST_ZOOKEEPER"

// shutdownWait limits a shutdown.
const shutdownWait = time.Minute

// tick is the tick of both servers. The longest session timeout is twenty ticks.
const tick = 2 * time.Second

// superDigest is the digest of super:test, which kazoo's and go-zookeeper's suites also use.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// ServerChild runs a server if a script of [ServerScript] started this process. It reports whether
// it did, and the exit code of the process.
func ServerChild() (code int, is bool) {
	if os.Getenv(serveEnv) == "" {
		return 0, false
	}
	if err := serveLaunch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// serveLaunch runs a server until a signal or an error.
func serveLaunch(args []string) error {
	l, err := parseLaunch(args, os.Getenv("SERVER_JVMFLAGS"))
	if err != nil {
		return err
	}
	opts, err := l.options()
	if err != nil {
		return err
	}
	if opts.SASLUsers, err = l.jaasUsers(); err != nil {
		return err
	}
	s, err := zkserver.New(&opts)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", l.addr())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
		defer cancel()
		_ = s.Shutdown(ctx) // Serve returns the error
	})()
	if err := s.Serve(ln); !errors.Is(err, zkserver.ErrServerClosed) {
		return err
	}
	<-s.Done() // another server can use the directory
	return nil
}

// ServerScript writes an executable file into dir that runs this test binary as a server.
func ServerScript(dir, name string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	quoted := "'" + strings.ReplaceAll(self, "'", `'\''`) + "'"
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", serveEnv, quoted)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	return nil
}

// Ours starts an embedded server with its data on disk, and returns its address. It checks for
// empty containers and expired nodes at the interval. The test's cleanup ends it.
func Ours(t *testing.T, interval time.Duration) string {
	t.Helper()
	return harness.Serve(t, zkserver.Options{
		DataDir: t.TempDir(), TickTime: tick, ExtendedTypes: true, MaxClientConns: -1, SuperDigest: superDigest,
		ContainerCheckInterval: interval, FourLetterWords: []string{"*"},
	})
}

// Theirs starts Apache ZooKeeper with the same settings, and returns its address. The test's
// cleanup ends it.
func Theirs(t *testing.T, interval time.Duration) string {
	t.Helper()
	return harness.StartServer(t, harness.ServerConfig{
		Release: harness.Release39, TickTime: tick, SuperDigest: superDigest,
		JavaFlags: []string{fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", interval.Milliseconds())},
	}).Addr()
}
