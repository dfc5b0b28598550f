// Package rounds compares contenders: it measures them in turns, round by round,
// so that whatever the machine does meanwhile happens to all of them, and keeps
// medians and the ratios between them. It knows nothing of what is measured.
package rounds
