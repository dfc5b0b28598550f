//go:build !unix

package contexts

// permissions says that a file's mode tells who may write it.
const permissions = false
