// Package screen draws full screens on a terminal and reads its keys, with no more
// of a terminal than every one since the VT100 has: it works over ssh, in tmux and on
// a console. What is drawn are [Line]s, of which those that changed are sent.
package screen
