package zkreal

import (
	"fmt"
	"os"
	"strings"
)

// QuorumPort is the port on which the server, while it leads, listens for its
// followers. It is 0 for a standalone server.
func (n *Node) QuorumPort() (int, error) {
	text, err := os.ReadFile(n.configPath())
	if err != nil {
		return 0, fmt.Errorf("zkreal: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		place, ok := strings.CutPrefix(line, fmt.Sprintf("server.%d=", n.id))
		if !ok {
			continue
		}
		var port int
		parts := strings.Split(place, ":")
		if len(parts) < 3 {
			return 0, fmt.Errorf("zkreal: %s: no ports in %q", n.configPath(), line)
		}
		if _, err := fmt.Sscan(parts[1], &port); err != nil {
			return 0, fmt.Errorf("zkreal: %s: %w", n.configPath(), err)
		}
		return port, nil
	}
	return 0, nil
}
