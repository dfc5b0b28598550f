// Package ensemble has processes use locks of every kind on three Apache ZooKeeper
// servers, each in a network namespace of its own, while their links are cut, one
// way or both, and flap, servers are stopped and killed, one after another or all
// at once, a disk is full, and holders and waiters are killed and stopped. What the
// processes wrote down is then judged as that of package storm, whose workers they
// are.
//
// The default run has every fault once. Long runs add up:
//
//	go test ./ensemble -run TestStorm -ensemble.duration=30m -ensemble.totals=FILE -timeout 60m
//
// goes on for so long and appends a row with its totals to the file.
package ensemble
