// Package golden records what the real Java client and the real server say to
// each other, as golden bytes for the codec's tests.
//
// The recordings are files of lines "name direction op hex":
//
//   - name is unique in its file and says what was done;
//   - direction is request, reply, event, connect-request or connect-reply;
//   - op is the operation's number in decimal (for a reply that of its request),
//     0 for events and for the handshake, which have none;
//   - hex is the frame's body, without the four bytes of its length.
//
// Lines that begin with # are comments. The test of this package records again
// and compares; with -update it writes the files.
package golden
