// Package ownership checks whether another user could change where a path leads, before a
// file is made or written there. In a directory of another user, a link may lead to any
// file of this user. It also checks whether other users may read a file with secrets. On
// systems other than Unix, the package refuses nothing.
package ownership
