// Package model records what clients ask of locks and what they are answered, and
// checks it afterwards. Its tests also search the Promela models in the folder spec.
//
// A [History] is a list of events with the times of one monotonic clock, kept
// as JSON lines: an operation is invoked, and then has an outcome that is
// known ([OK], [Fail]) or unknown ([Info]). [Check] checks it in two ways that
// share only the events. The first asks porcupine whether some order of
// the operations, each at one moment between its invocation and its return,
// explains all outcomes by a [Model] of the lock. The second sweeps through the
// times at which holds are certain to have been held, and looks for two that
// conflict.
//
// Whatever makes a result worthless is a violation too: a search that did not end in
// time, an operation without an outcome whose client was not killed, and a history in
// which too little happened.
//
// # Unknown outcomes
//
// The moment at which a lost hold ends is unknown: its end is an operation that begins
// when the hold is no longer certain, and that need never return. The same holds for a
// hold whose session an operator ended or whose process was killed, and for a release
// that was not confirmed.
package model
