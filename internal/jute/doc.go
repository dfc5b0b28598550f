// Package jute encodes and decodes the primitive types of Hadoop's Jute, the
// serialization of all ZooKeeper messages: booleans, big-endian integers,
// length-prefixed buffers and strings, and counted vectors.
//
// The encoder appends to a slice of the caller, so a connection can fill one buffer
// with many messages without allocating. The decoder is a [Reader], which keeps its
// first error. So a record is read field by field without a check at each step, and
// the caller asks for the error once, at the end.
//
// The decoder is stricter than Java's (org.apache.jute.BinaryInputArchive): a boolean
// must be the byte 0 or 1, and a string is never null. So whatever it accepts encodes
// to the same bytes again, which the fuzz tests check. Every length is compared with
// the available bytes before anything is allocated for it.
package jute
