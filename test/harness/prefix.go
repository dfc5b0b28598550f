package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
)

// ErrNoPrefix reports that no private addresses are free.
var ErrNoPrefix = errors.New("harness: no free /24 in 10.64.0.0/10")

// freePrefix returns a private /24 for the client links. It overlaps with no address or route of
// the test's namespace.
func freePrefix() (netip.Prefix, error) {
	used, err := usedPrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	for range 1000 {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(64 + rand.IntN(64)), byte(rand.IntN(256)), 0}), 24)
		if !overlaps(candidate, used) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, ErrNoPrefix
}

func overlaps(p netip.Prefix, used []netip.Prefix) bool {
	for _, u := range used {
		if u.Overlaps(p) {
			return true
		}
	}
	return false
}

// usedPrefixes returns the networks of the interfaces, and the routes without the default.
func usedPrefixes() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	var used []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p)
		}
	}
	routes, err := output("", "ip", "-4", "route")
	if err != nil {
		return nil, err
	}
	return append(used, parseRoutes(string(routes))...), nil
}

// parseRoutes returns the destinations in the output of "ip route", without "default".
func parseRoutes(text string) []netip.Prefix {
	var found []netip.Prefix
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if p, err := netip.ParsePrefix(word); err == nil {
			found = append(found, p)
		} else if a, err := netip.ParseAddr(word); err == nil {
			found = append(found, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return found
}
