// Package cli provides what all commands of zklock share: settings, connections, output,
// help, errors, and exit codes.
package cli
