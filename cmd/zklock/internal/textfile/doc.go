// Package textfile keeps what became of runs of commands in a file for the node
// exporter's textfile collector.
//
// A run is too short to be asked: it reads the file that the last one left, adds
// what it did, and puts a new file in its place, so that whoever reads at any
// moment finds a whole one. Counters go on over runs and restarts. Several runs may
// share a file: each has it for itself for a moment, and keeps what the others
// wrote.
package textfile
