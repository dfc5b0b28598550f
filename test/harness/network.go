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

// ErrCommand says that ip or nft failed; its text has what it printed.
var ErrCommand = errors.New("harness: command failed")

// commandTimeout bounds one run of ip or nft, which take milliseconds.
const commandTimeout = 5 * time.Minute

// Names within a namespace; each has its own.
const (
	quorumLink = "q0"
	clientLink = "c0"
)

// made counts this process's networks, as tests may run in parallel. Links'
// names have 15 bytes at most, which leaves two digits for it.
var made atomic.Int64

// quorumNet is seen by the servers of one network alone, so that all networks
// may use the same.
var quorumNet = netip.MustParsePrefix("10.77.0.0/24")

// Network is a set of hosts.
type Network struct {
	Hosts []*Host

	prefix string // of the namespaces' and links' names
	hub    string // the namespace with the quorum's bridge
}

// NewNetwork makes a network of size hosts (at most 60), which the test's cleanup
// takes down. Whatever runs in the namespaces must have ended by then, so call
// NewNetwork first.
func NewNetwork(tb testing.TB, size int) *Network {
	tb.Helper()
	need(tb)
	base, err := freePrefix()
	if err != nil {
		tb.Fatal(err)
	}
	n := &Network{prefix: fmt.Sprintf("zkt%dx%d", os.Getpid(), made.Add(1)%100)}
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

// need skips the test where namespaces cannot be made, and removes what a test
// binary that was killed has left.
func need(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, "network namespaces need root")
	}
	for _, command := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(command); err != nil {
			SkipOrFail(tb, err.Error())
		}
	}
	if err := sweep(); err != nil {
		tb.Fatal(err)
	}
	probe := fmt.Sprintf("zkt%dxprobe%d", os.Getpid(), made.Add(1)%100)
	if err := run("", "ip", "netns", "add", probe); err != nil {
		Skip(tb, "root, but may not make network namespaces: "+err.Error())
	}
	if err := run("", "ip", "netns", "delete", probe); err != nil {
		tb.Fatal(err)
	}
}

// ours matches the names of this package's namespaces and links, with the pid
// of who made them.
var ours = regexp.MustCompile(`^zkt(\d+)x`)

// orphaned reports whether name is of this package and its maker runs no more.
func orphaned(name string) bool {
	match := ours.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	_, err := os.Stat("/proc/" + match[1])
	return errors.Is(err, os.ErrNotExist)
}

// sweep deletes what test binaries have left that were killed: namespaces, and
// links, which may stay for minutes after their namespace's name has gone.
func sweep() error {
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
		// A link goes with its peer, and with another binary's sweep.
		err := run("", "ip", "link", "delete", link.Name)
		if _, gone := net.InterfaceByName(link.Name); err != nil && gone == nil {
			return err
		}
	}
	return nil
}

// namespaces lists the named ones of this machine.
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

// remove deletes the links and the namespaces. The kernel takes a namespace
// apart in its own time, so the links in the test's are deleted by name.
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

// Placements are the hosts for [StartEnsembleAt].
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

// Heal undoes the faults of all hosts.
func (n *Network) Heal() error {
	var errs []error
	for _, h := range n.Hosts {
		errs = append(errs, h.Heal())
	}
	return errors.Join(errs...)
}

// run runs a command with the given input; its error has the output.
func run(input string, command ...string) error {
	_, err := output(input, command...)
	return err
}

func output(input string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: %s", ErrCommand, strings.Join(command, " "), err, complaint.Bytes())
	}
	return out, nil
}
