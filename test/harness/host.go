package harness

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
)

// Host is a network namespace with a link to the other servers and one to the test. Any
// goroutine may call its methods. A fault lasts until Heal.
type Host struct {
	Namespace string // for "ip netns exec"

	outside        string // the client link's end in the test's namespace
	client, quorum netip.Addr

	mu    sync.Mutex // guards rules
	rules []string   // nftables rules that drop packets
}

// script returns the commands that create the namespace and its links. hostSide is the test's
// address on the client link. number is that of the hub's port.
func (h *Host) script(hub string, hostSide netip.Addr, number int) [][]string {
	ns, outside := h.Namespace, h.outside
	port := fmt.Sprintf("p%d", number)
	return [][]string{
		{"ip", "netns", "add", ns},
		{"ip", "-n", ns, "link", "set", "lo", "up"},
		{"ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", quorumLink, "netns", ns},
		{"ip", "-n", hub, "link", "set", port, "master", "br0", "up"},
		{"ip", "-n", ns, "address", "add", fmt.Sprintf("%s/%d", h.quorum, quorumNet.Bits()), "dev", quorumLink},
		{"ip", "-n", ns, "link", "set", quorumLink, "up"},
		{"ip", "link", "add", outside, "type", "veth", "peer", "name", clientLink, "netns", ns},
		{"ip", "address", "add", hostSide.String() + "/30", "dev", outside},
		{"ip", "link", "set", outside, "up"},
		{"ip", "-n", ns, "address", "add", h.client.String() + "/30", "dev", clientLink},
		{"ip", "-n", ns, "link", "set", clientLink, "up"},
	}
}

// CutQuorum drops every packet between this host and the other servers. The host does not
// notice, unlike after [Host.LinkDown].
func (h *Host) CutQuorum() error {
	return h.add(fmt.Sprintf("iifname %q drop", quorumLink), fmt.Sprintf("oifname %q drop", quorumLink))
}

// CutClients drops every packet between this host and its clients.
func (h *Host) CutClients() error {
	return h.add(fmt.Sprintf("iifname %q drop", clientLink), fmt.Sprintf("oifname %q drop", clientLink))
}

// DropFrom drops the packets that other sends to this host over the quorum's network,
// in this direction only.
func (h *Host) DropFrom(other *Host) error {
	return h.add(fmt.Sprintf("iifname %q ip saddr %s drop", quorumLink, other.quorum))
}

// LinkDown takes the link to the other servers down, which the host notices.
func (h *Host) LinkDown() error {
	return run("", "ip", "-n", h.Namespace, "link", "set", quorumLink, "down")
}

// Heal removes all faults of this host.
func (h *Host) Heal() error {
	h.mu.Lock()
	h.rules = nil
	h.mu.Unlock()
	if err := run("", "ip", "-n", h.Namespace, "link", "set", quorumLink, "up"); err != nil {
		return err
	}
	return h.apply(nil)
}

func (h *Host) add(rules ...string) error {
	h.mu.Lock()
	h.rules = append(h.rules, rules...)
	all := append([]string(nil), h.rules...)
	h.mu.Unlock()
	return h.apply(all)
}

// apply replaces all rules in one transaction.
func (h *Host) apply(rules []string) error {
	var b strings.Builder
	b.WriteString("add table inet zkt\ndelete table inet zkt\n")
	if len(rules) > 0 {
		b.WriteString("table inet zkt {\n")
		for _, hook := range []string{"input", "output"} {
			fmt.Fprintf(&b, "chain %s { type filter hook %s priority 0;\n", hook, hook)
			for _, rule := range rules {
				if strings.HasPrefix(rule, "oif") == (hook == "output") {
					b.WriteString(rule + "\n")
				}
			}
			b.WriteString("}\n")
		}
		b.WriteString("}\n")
	}
	return run(b.String(), "ip", "netns", "exec", h.Namespace, "nft", "-f", "-")
}

// DropPort drops the packets from and to other servers with this port at either end.
func (h *Host) DropPort(port int) error {
	return h.add(
		fmt.Sprintf("iifname %q tcp dport %d drop", quorumLink, port), fmt.Sprintf("iifname %q tcp sport %d drop", quorumLink, port),
		fmt.Sprintf("oifname %q tcp dport %d drop", quorumLink, port), fmt.Sprintf("oifname %q tcp sport %d drop", quorumLink, port))
}
