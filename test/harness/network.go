package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// ErrCommand reports that ip or nft failed. Its text contains the output.
var ErrCommand = errors.New("harness: command failed")

// commandTimeout limits one run of ip or nft, which takes milliseconds.
const commandTimeout = 5 * time.Minute

// Names of the links in each namespace.
const (
	quorumLink = "q0"
	clientLink = "c0"
)

// networks counts the networks of this process. The name of a link has at most 15 bytes, which
// leaves two digits for the count.
var networks atomic.Int64

// quorumNet is visible only to the servers of one network, so all networks use the same prefix.
var quorumNet = netip.MustParsePrefix("10.77.0.0/24")

// Network is a set of hosts.
type Network struct {
	Hosts []*Host

	prefix string // of the names of namespaces and links
	hub    string // the namespace with the bridge between the servers
}

// NewNetwork creates a network of size hosts (at most 60), which the test's cleanup removes.
// The programs in the namespaces must end before, so call NewNetwork before starting them.
func NewNetwork(tb testing.TB, size int) *Network {
	tb.Helper()
	needNamespaces(tb)
	base, err := freePrefix()
	if err != nil {
		tb.Fatal(err)
	}
	n := &Network{prefix: fmt.Sprintf("zkt%dx%d", os.Getpid(), networks.Add(1)%100)}
	n.hub = n.prefix + "hub"
	tb.Cleanup(func() {
		if err := n.remove(); err != nil {
			tb.Errorf("clean up: %v", err)
		}
	})
	if err := n.build(size, base); err != nil {
		tb.Fatal(err)
	}
	return n
}

// needNamespaces skips the test if it cannot create namespaces, and removes those of killed test
// binaries.
func needNamespaces(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, "network namespaces need root")
	}
	for _, command := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(command); err != nil {
			SkipOrFail(tb, err.Error())
		}
	}
	if err := removeOrphans(); err != nil {
		tb.Fatal(err)
	}
	probe := fmt.Sprintf("zkt%dxprobe%d", os.Getpid(), networks.Add(1)%100)
	if err := run("", "ip", "netns", "add", probe); err != nil {
		Skip(tb, "root, but may not create network namespaces: "+err.Error())
	}
	if err := run("", "ip", "netns", "delete", probe); err != nil {
		tb.Fatal(err)
	}
}

// ours matches the names of this package's namespaces and links, with the pid of their creator.
var ours = regexp.MustCompile(`^zkt(\d+)x`)

// orphaned reports whether this package created name, and the creator has ended.
func orphaned(name string) bool {
	match := ours.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	_, err := os.Stat("/proc/" + match[1])
	return errors.Is(err, os.ErrNotExist)
}

// removeOrphans deletes the namespaces and links of killed test binaries. A link may exist for
// minutes after its namespace.
func removeOrphans() error {
	names, err := namespaces()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !orphaned(name) {
			continue
		}
		err := run("", "ip", "netns", "delete", name)
		if _, gone := os.Stat("/run/netns/" + name); err != nil && gone == nil {
			return err
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	for _, link := range links {
		if !orphaned(link.Name) {
			continue
		}
		// A link ends with its peer, or another binary may delete it.
		err := run("", "ip", "link", "delete", link.Name)
		if _, gone := net.InterfaceByName(link.Name); err != nil && gone == nil {
			return err
		}
	}
	return nil
}

// namespaces returns the names of this machine's network namespaces.
func namespaces() ([]string, error) {
	entries, err := os.ReadDir("/run/netns")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (n *Network) build(size int, base netip.Prefix) error {
	script := [][]string{
		{"ip", "netns", "add", n.hub},
		{"ip", "-n", n.hub, "link", "add", "br0", "type", "bridge"},
		{"ip", "-n", n.hub, "link", "set", "br0", "up"},
	}
	client, quorum := base.Addr(), quorumNet.Addr().Next()
	for i := range size {
		h := &Host{
			Namespace: fmt.Sprintf("%sh%d", n.prefix, i+1), outside: fmt.Sprintf("%sc%d", n.prefix, i+1),
			quorum: quorum,
		}
		hostSide := client.Next()
		h.client = hostSide.Next()
		client = h.client.Next().Next() // the next /30
		quorum = quorum.Next()
		n.Hosts = append(n.Hosts, h)
		script = append(script, h.script(n.hub, hostSide, i+1)...)
	}
	for _, command := range script {
		if err := run("", command...); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the links and the namespaces. The kernel removes the links of a namespace
// later, so remove deletes those in the test's namespace by name.
func (n *Network) remove() error {
	names, err := namespaces()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range n.Hosts {
		if _, err := net.InterfaceByName(h.outside); err == nil {
			errs = append(errs, run("", "ip", "link", "delete", h.outside))
		}
	}
	for _, name := range names {
		if name == n.hub || slices.ContainsFunc(n.Hosts, func(h *Host) bool { return h.Namespace == name }) {
			errs = append(errs, run("", "ip", "netns", "delete", name))
		}
	}
	return errors.Join(errs...)
}

// Placements returns the hosts for [StartEnsembleAt].
func (n *Network) Placements() []Placement {
	places := make([]Placement, len(n.Hosts))
	for i, h := range n.Hosts {
		places[i] = Placement{
			ClientHost: h.client.String(), QuorumHost: h.quorum.String(),
			Prefix: []string{"ip", "netns", "exec", h.Namespace},
		}
	}
	return places
}

// Heal removes the faults of all hosts.
func (n *Network) Heal() error {
	var errs []error
	for _, h := range n.Hosts {
		errs = append(errs, h.Heal())
	}
	return errors.Join(errs...)
}

// run runs a command with the given input. Its error contains the output.
func run(input string, command ...string) error {
	_, err := output(input, command...)
	return err
}

func output(input string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: %s", ErrCommand, strings.Join(command, " "), err, errs.Bytes())
	}
	return out, nil
}
