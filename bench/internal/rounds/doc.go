// Package rounds compares contenders. It measures them in turns, round by round, so that
// other load on the machine affects all of them, and computes medians and the ratios
// between the contenders.
package rounds
