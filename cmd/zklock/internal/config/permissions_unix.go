//go:build unix

package config

// permissions reports whether the mode of a file shows which users may write it.
const permissions = true
