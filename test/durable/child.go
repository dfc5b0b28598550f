package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// ordersEnv holds the Config of a process that is to be a server.
const ordersEnv = "ZKLOCK_TEST_SERVER"

// readyWord is what a server says on the pipe that it got as descriptor 3.
const readyWord = "ready"

// listenWait bounds the wait for an address that the kernel still holds.
const listenWait = 5 * time.Second

// Child reports whether this process was started to be a server. If so it has
// been one when Child returns, and ends with the code.
func Child() (code int, is bool) {
	orders := os.Getenv(ordersEnv)
	if orders == "" {
		return 0, false
	}
	if err := serve(orders); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// serve is a server until it fails or is killed.
func serve(orders string) error {
	var cfg Config
	if err := json.Unmarshal([]byte(orders), &cfg); err != nil {
		return fmt.Errorf("durable: orders: %w", err)
	}
	srv, err := zkserver.New(zkserver.Options{
		DataDir: cfg.Dir, TickTime: cfg.Tick, SnapshotRecords: cfg.SnapshotRecords,
		MaxClientConns: -1,
		Logger:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	ln, err := listen(cfg.Network, cfg.Address)
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	word := os.NewFile(3, "ready")
	if _, err := word.WriteString(readyWord); err != nil {
		return errors.Join(err, srv.Close())
	}
	if err := word.Close(); err != nil {
		return errors.Join(err, srv.Close())
	}
	return srv.Serve(ln)
}

// listen listens, also where a killed process left a socket's file behind: the
// data directory's lock says that nobody else uses it.
func listen(network, address string) (net.Listener, error) {
	if network == "unix" {
		if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(listenWait); ; <-again.C {
		ln, err := net.Listen(network, address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return ln, err
		}
	}
}
