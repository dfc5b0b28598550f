// Package top is the live view of locks in a terminal: a list of them, and of each
// its queue as a chain. What is shown is a function of a [Model], which changes by
// keys and snapshots; [Run] is the loop around it.
package top
