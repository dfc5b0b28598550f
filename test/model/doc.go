// Package model records the requests of clients to locks and their results, and checks
// them afterwards. Its tests also search the Promela models in the folder spec.
//
// A [History] is a list of events with times of one monotonic clock, stored as JSON
// lines. An operation is invoked, and then has a known outcome ([OK], [Fail]) or an
// unknown one ([Info]). [Check] checks a history in two ways that share only the events.
// First, porcupine searches for an order of the operations that a [Model] of the lock
// permits, in which each operation takes effect between its invocation and its return.
// Second, a sweep over the times in which clients certainly held locks finds conflicting
// holds.
//
// A defect that makes a result worthless is also a violation: a search that exceeds its
// limit, an operation without an outcome whose client was not killed, and a history with
// too few operations.
//
// # Unknown outcomes
//
// The moment at which a lost hold ends is unknown. Its end is an operation that begins
// when the hold is no longer certain, and that may never return. The same is true for a
// hold whose session an operator ended or whose process was killed, and for a release
// that was not confirmed.
package model
