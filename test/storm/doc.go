// Package storm has processes use locks of every kind over TCP while whatever can
// be done to their connections, to themselves, to the server and to its data is
// done, and judges what they wrote down.
//
// The workers are this test binary, started again with their orders in the
// environment; each dials through a proxy of its own in front of a server in
// another process: the embedded one, or Apache ZooKeeper. A [Script], drawn from a
// printed seed, says which fault comes when. After some of them all is healed: the
// waiting must be granted, then all rest, and nothing of theirs may be left on the
// server while their sessions live. Then the histories of all processes are
// merged and judged by package history.
//
// A fault counts when it has happened. A run in which one of the kinds of fault
// did not happen, or too few locks were taken, fails. With a failure the histories
// and the script are kept in a directory that is printed.
//
// The default run has each fault once on each server. Long runs add up:
//
//	go test ./storm -run TestStorm -storm.duration=30m -storm.totals=FILE -timeout 40m
//
// goes on for so long and appends a row with its totals to the file.
package storm
