// Command zklock holds locks of Apache ZooKeeper while commands run, and shows
// who holds them. See `zklock help`.
package main

import (
	"os"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
