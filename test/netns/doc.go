// Package netns gives each server of an ensemble a network namespace of its
// own, so that tests can partition them as a failing network does.
//
// Every host has two links: one to the network of the quorum, on which only the
// servers are, and one to the test's own namespace, for clients. So a follower
// can be cut off from its leader while its clients still reach it, which is the
// fault that makes two clients believe they hold one lock.
//
// It needs root and the commands ip and nft; where they are missing the tests
// are skipped, and say so.
package netns
