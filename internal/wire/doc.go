// Package wire is ZooKeeper's client protocol as Go types: every message, in
// both directions, for client, server, proxies and tests alike.
//
// Each message body is a [Record] that decodes itself from a jute.Reader and
// appends itself to a slice. [NewRequest] and [NewResponse] give the empty
// record that belongs to an operation. One file holds one operation, request
// and response together. The field names are those of zookeeper.jute, and the
// layouts those of the org.apache.zookeeper.proto classes generated from it.
//
// Two laws hold for every record and are what the fuzz tests check. Bytes that
// decode without error and without a rest encode to the same bytes. No bytes
// make a decoder panic, or allocate more than a small multiple of their number.
//
// Decode overwrites every field, so that a record may be used again. Buffers in
// a decoded record alias the frame; strings are copies. A record is not safe
// for use by several goroutines at a time. Nothing here knows sessions, time or
// connections.
package wire
