//go:build unix

package main

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/zk"
)

// certificates creates files in a new directory: the authority ca.pem, and with it server.pem and
// ann.pem with their keys, ann-cert.pem, ann-key.pem, and server3.pem for another host; and the
// authority foreign.pem of server2.pem and stranger.pem.
//
//	certificates DIRECTORY
func certificates(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: certificates DIRECTORY")
		}
		dir := ts.MkAbs(args[0])
		ts.Check(os.Mkdir(dir, 0o700))
		ca, foreign := testcert.New(t, "ca"), testcert.New(t, "foreign")
		ann := ca.Client("ann")
		testcert.Write(t, dir, "ca.pem", ca.PEM, "foreign.pem", foreign.PEM,
			"server.pem", ca.Server("127.0.0.1", "localhost").Both(), "server2.pem", foreign.Server("127.0.0.1").Both(),
			"server3.pem", ca.Server("zoo.example").Both(), "stranger.pem", foreign.Client("ann").Both(),
			"ann.pem", ann.Both(), "ann-cert.pem", ann.Cert, "ann-key.pem", ann.Key)
	}
}

// lockdown creates a persistent znode on the script's local server that only one digest user may
// use.
//
//	lockdown PATH USER PASSWORD
func lockdown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: lockdown PATH USER PASSWORD")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	z, err := ts.Value(othersKey{}).(*others).dial(ctx)
	ts.Check(err)
	if err := create(ctx, z, args[0], nil, zk.ModePersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		ts.Check(err)
	}
	sum := sha1.Sum([]byte(args[1] + ":" + args[2]))
	id := args[1] + ":" + base64.StdEncoding.EncodeToString(sum[:])
	_, err = z.SetACL(ctx, args[0], []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: id}}, -1)
	ts.Check(err)
}
