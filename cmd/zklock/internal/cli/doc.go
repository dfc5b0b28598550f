// Package cli is the command line of zklock: what each command does with its
// arguments, and which exit code comes of it.
package cli
