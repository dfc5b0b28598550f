package peer

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// commandPackage is the package of the command that runs the embedded server.
const commandPackage = "github.com/zklock/zklock/cmd/zklock"

// Embedded returns the embedded server, run by "zklock serve", with a name for the table.
// Unless binary names a command, it builds the command from the workspace into dir.
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
