//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/zk"
)

// others is a session in which a script creates znodes of other libraries.
type others struct {
	home   string
	client *zk.Client // nil until the first use
}

// othersKey is the key of the others of a script.
type othersKey struct{}

// dial connects to the script's server, which must run.
func (o *others) dial(ctx context.Context) (*zk.Client, error) {
	if o.client != nil {
		return o.client, nil
	}
	c, err := zk.Dial(ctx, "unix:"+local.Place{Dir: o.home}.Socket(), nil)
	o.client = c
	return c, err
}

// close ends the session.
func (o *others) close() {
	if o.client != nil {
		_ = o.client.Close() // the server may be gone by now
	}
}

// znode changes znodes, as programs with other libraries do.
//
//	znode create PATH [DATA]    an ephemeral znode, with persistent parents
//	znode sequence PATH [DATA]  the same, with a sequence number
//	znode keep PATH [DATA]      a persistent znode
//	znode set PATH DATA
//	znode get PATH              to stdout
//	znode delete PATH
func znode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: znode create|sequence|keep|set|get|delete PATH [DATA]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	z, err := ts.Value(othersKey{}).(*others).dial(ctx)
	ts.Check(err)
	data := []byte(strings.Join(args[2:], " "))
	switch args[0] {
	case "create":
		ts.Check(create(ctx, z, args[1], data, zk.ModeEphemeral))
	case "sequence":
		ts.Check(create(ctx, z, args[1], data, zk.ModeEphemeralSequential))
	case "keep":
		ts.Check(create(ctx, z, args[1], data, zk.ModePersistent))
	case "set":
		_, err = z.Set(ctx, args[1], data, -1)
		ts.Check(err)
	case "get":
		data, _, err := z.Get(ctx, args[1])
		ts.Check(err)
		_, err = fmt.Fprintf(ts.Stdout(), "%s\n", data)
		ts.Check(err)
	case "delete":
		ts.Check(z.Delete(ctx, args[1], -1))
	default:
		ts.Fatalf("znode knows no %s", args[0])
	}
}

// create creates a znode and its parents.
func create(ctx context.Context, z *zk.Client, path string, data []byte, mode zk.CreateMode) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		_, _, err := z.Create(ctx, path[:i], nil, zk.OpenACL(), zk.ModePersistent)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	_, _, err := z.Create(ctx, path, data, zk.OpenACL(), mode)
	return err
}
