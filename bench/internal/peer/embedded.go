package peer

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// commandPackage is what runs the embedded server as a process.
const commandPackage = "github.com/zklock/zklock/cmd/zklock"

// Embedded returns the embedded server as "zklock serve" runs it, under a name
// for the table. It builds the command from the workspace into dir, unless
// binary names one.
func Embedded(ctx context.Context, name, dir, binary string) (*Kind, error) {
	if binary == "" {
		binary = filepath.Join(dir, "zklock")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, commandPackage).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("peer: go build %s: %w\n%s", commandPackage, err, out)
		}
	}
	return &Kind{Name: name, command: func(config string) *exec.Cmd {
		return exec.Command(binary, "serve", "--config", config)
	}}, nil
}
