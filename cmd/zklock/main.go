// Command zklock runs commands under locks on Apache ZooKeeper, and shows the holders and
// waiters of locks. See `zklock help`.
package main

import (
	"os"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], commands)) }
