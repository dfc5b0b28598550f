package zkkerberos_test

import (
	"context"
	"log"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkkerberos"
)

// A service authenticates with its keytab, and only it can use its locks.
func Example() {
	ctx := context.Background()
	kerberos, err := zkkerberos.New(&zkkerberos.Options{
		Principal: "app@EXAMPLE.COM",
		Keytab:    "/etc/app.keytab",
	})
	if err != nil {
		log.Fatal(err)
	}
	c, err := zklock.Dial(ctx, "zk1:2181,zk2:2181,zk3:2181", &zklock.Options{
		SASL: kerberos,
		ACL:  []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: "app@EXAMPLE.COM"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	hold, err := c.Mutex("nightly").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)
}
