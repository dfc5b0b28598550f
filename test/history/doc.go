// Package history writes down what clients asked of locks and what they were
// told, and judges it afterwards.
//
// A [History] is a list of events with the times of one monotonic clock, kept
// as JSON lines: an operation is invoked, and then has an outcome that is
// known ([OK], [Fail]) or unknown ([Info]). [Check] judges it in two ways that
// share nothing but the events. The first asks porcupine whether some order of
// the operations, each at one moment between its invocation and its return,
// explains all outcomes by a [Model] of the lock. The second sweeps through the
// times at which holds are certain to have been held and looks for two that
// conflict.
//
// Whatever makes a verdict worthless is a violation: an order that was not found
// in time, an operation without an outcome whose client was not killed, a
// history in which too little happened.
//
// # What is not known
//
// A hold that is lost ends at some moment that nobody sees: it is an operation
// that begins when the hold is no longer certain and need never return. So does
// a hold whose session an operator ended or whose process was killed, and a
// release that was not confirmed.
package history
