package clitest

import (
	"fmt"
	"time"

	"github.com/zklock/zklock"
)

// Entry returns an entry of a mutex of zklock.
func Entry(host string, pid int, holder bool, now time.Time, age time.Duration) zklock.Entry {
	return zklock.Entry{Mode: zklock.Exclusive, Holder: holder, Token: 9, Czxid: 9, Session: int64(pid), Since: now.Add(-age),
		Path: "/zklock/demo", Node: "/zklock/demo/" + EntryName("-lock-", pid), Name: EntryName("-lock-", pid),
		Owner: zklock.Owner{Host: host, PID: pid, User: "ann", Command: "backup"}}
}

// EntryName returns the name of an entry as Curator and zklock write it.
func EntryName(marker string, seq int) string {
	return fmt.Sprintf("_c_0f8fad5b-d9cb-469f-a165-70867728950e%s%010d", marker, seq)
}

// At returns an entry in the queue of another lock.
func At(path string, e zklock.Entry) zklock.Entry {
	e.Path, e.Node = path, path+"/"+e.Name
	return e
}
