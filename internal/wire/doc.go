// Package wire implements ZooKeeper's client protocol: every message in both
// directions, for clients, servers, proxies, and tests.
//
// Each message body is a [Record] that decodes itself from a jute.Reader and appends
// itself to a slice. [NewRequest] and [NewResponse] return the empty record for an
// operation. The field names are those of zookeeper.jute. The layouts are those of
// the org.apache.zookeeper.proto classes that are generated from it.
//
// Two rules hold for every record, and the fuzz tests check them. Bytes that decode
// without an error and without a remainder encode to the same bytes. No input makes a
// decoder panic, or allocate more than a small multiple of its size.
//
// Decode overwrites every field, so a record may be reused. Buffers in a decoded
// record alias the frame; strings are copies. A record is not safe for concurrent
// use. This package knows no sessions, time, or connections.
package wire
