// Package thirdparty runs the clients that other people wrote, unmodified,
// against a server of package zkserver that keeps its data on disk: ZooKeeper's
// own zkCli.sh, kazoo's recipes, Curator's recipes, programs on the C library,
// and go-zookeeper.
//
// Each has a script here that goes through its interface at length and prints
// what came, without what differs from run to run. The same script runs against
// Apache ZooKeeper at the same time, and the two must print the same.
//
// With -suites the test suites of kazoo and go-zookeeper run as well, again on
// both. They start their own servers, by the names that ZooKeeper's have: java,
// zkServer.sh. What they find under these names is this test binary
// ([ServerChild]).
package thirdparty
