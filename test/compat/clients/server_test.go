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

// serveEnv makes this binary a server whose command line is that of ZooKeeper's.
const serveEnv = "ZKLOCK_TEST_ZOOKEEPER"

// shutdownWait bounds the end of a server that was told to end.
const shutdownWait = time.Minute

// tick is the tick of both servers. Twenty of them bound what clients may ask for
// ([sessionTimeout]).
const tick = 2 * time.Second

// superDigest is that of super:test, which kazoo's and go-zookeeper's suites use
// as well.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// ServerChild reports whether this process was started in the place of
// ZooKeeper's server, by the file that [Impostor] wrote. If so it has been one
// when ServerChild returns, and ends with the code.
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

// serveLaunch is a server until it is told to end, or fails.
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
		_ = s.Shutdown(ctx) // Serve's error says whether it has ended well
	})()
	if err := s.Serve(ln); !errors.Is(err, zkserver.ErrServerClosed) {
		return err
	}
	<-s.Done() // its directory is free for the next one
	return nil
}

// Impostor writes an executable file of the name into dir, which is this test
// binary as a server ([ServerChild]).
func Impostor(dir, name string) error {
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

// Ours starts a server of package zkserver with its data in a directory of the
// test, and returns its address. It looks for containers and nodes past their
// time to live once in each sweep. The test's cleanup ends it.
func Ours(t *testing.T, sweep time.Duration) string {
	t.Helper()
	return harness.Serve(t, zkserver.Options{
		DataDir: t.TempDir(), TickTime: tick, ExtendedTypes: true, MaxClientConns: -1, SuperDigest: superDigest,
		ContainerCheckInterval: sweep, FourLetterWords: []string{"*"},
	})
}

// Theirs starts Apache ZooKeeper, set up in the same way, and returns its
// address. The test's cleanup ends it.
func Theirs(t *testing.T, sweep time.Duration) string {
	t.Helper()
	return harness.StartServer(t, harness.ServerConfig{
		Release: harness.Release39, TickTime: tick, SuperDigest: superDigest,
		JavaFlags: []string{fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", sweep.Milliseconds())},
	}).Addr()
}
