// Package jute encodes and decodes the primitive types of Hadoop's Jute, the
// serialization under every ZooKeeper message: booleans, big-endian integers,
// length-prefixed buffers and strings, and counted vectors.
//
// Encoding appends to a slice that the caller owns, so that a connection can
// fill one buffer with many messages and allocate nothing. Decoding goes
// through a [Reader], which keeps its first error: a record is read field by
// field without a look at each step, and the error is asked for once, at the
// end.
//
// The decoder is stricter than Java's (org.apache.jute.BinaryInputArchive): a
// boolean is the byte 0 or 1 and nothing else, a string is never null. What it
// accepts therefore encodes to the very bytes that were read, which the fuzz
// tests hold as a law. Every length is checked against the bytes that are
// there before anything is allocated for it.
package jute
