// Package regressions plays the bugs that other libraries' locks had, or have, on
// this project's: each test is one schedule of faults, by package zktest within a
// synctest bubble, so that it happens for certain. The same schedule is played
// with the bug: with go-zookeeper itself where its version 1.0.4 has it, else with
// the recipe of ZooKeeper's documentation in a few lines and that flaw. There it
// must fail, and with the words that are the bug's; and every test fails if its
// fault did not happen.
//
// CURATOR and ZOOKEEPER are Apache's trackers, the others are on GitHub.
//
//	test                                      whose bug                        what went wrong                                     what holds here
//	TestOrphanAfterFailedCreate               samuel/go-zookeeper#229          znode forgotten when the listing's answer is lost   the acquire goes on, and has its znode
//	TestOrphanAfterCancel                     CURATOR-79, CURATOR-18           a cancel during the create leaves the znode         a znode of unknown fate is looked for and deleted
//	TestOrphanAfterLostCleanup                python-zk/kazoo#732              the clean-up is tried once                          deleted until it is known to be gone
//	TestTwoNodesOfOneSession                  etcd-io/etcd#5199, CURATOR-3     create done again, waits for its own first znode    the older of two is deleted
//	TestAdoptedNodeOfADyingSession            CURATOR-498, CURATOR-604         a znode with its mark, of a session at its end      own is what has the mark and the session
//	TestMissedWakeUp                          shayhatsor/zookeeper#26,         gone between listing and watch, waits for ever      a watch on nothing is an answer
//	                                          apache/helix#44
//	TestWakeUpBeforeTheWait                   CURATOR-527, CURATOR-641         the event comes before the wait                     events are kept, not signalled
//	TestWatchOnANodeAlreadyGone               CURATOR-107, python-zk/kazoo#490 exists leaves a watch on what never comes           no watch is left
//	TestReleaseRequestLost                    CURATOR-678, CURATOR-486         a failed release forgets its znode                  deleted until it is known to be gone
//	TestReleaseReplyLost                      the same, go-zookeeper 1.0.4     a release that was done fails for ever              done is done
//	TestStaleReleaseDeletesANewerLock         etcd-io/etcd#22082               the retry deletes what has the name by then         looked at before it is deleted
//	TestStaleReleaseOfOneClient               etcd-io/etcd#22082               the same in one session                             released twice is released once
//	TestGrantWithoutLookingAtTheSession       etcd-io/etcd#9921, #16221        granted by an event, the session over               a grant needs a deadline ahead
//	TestWaiterIgnoresItsOwnExpiry             etcd-io/etcd#19597               waits without a place in the queue                  queues again, at the back
//	TestSwappedSession                        ClickHouse/ClickHouse#116690     another session taken for the same                  lost
//	TestSwappedSessionIsTold                  ClickHouse/ClickHouse#116690     nobody is told                                      told with the handshake
//	TestPermitsNotReturned                    CURATOR-315, -335, -462          a permit stays with who failed or gave up           given back
//	TestReadersWaitForLaterWriters            python-zk/kazoo#649              reader and writer wait for each other               readers wait for who is ahead
//	TestSequenceAtItsLimit                    go-zookeeper/zk#65,              the last number comes again, all hold               refused, nothing left
//	                                          python-zk/kazoo#730,
//	                                          ZOOKEEPER-2944
//	TestContainerCollectedUnderAWaitingClient python-zk/kazoo#563, CURATOR-180 no such znode                                       parents are made again
//	TestContainerCollected                    the same, by the collector       no such znode                                       parents are made again
package regressions
