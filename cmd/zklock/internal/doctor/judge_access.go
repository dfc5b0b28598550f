package doctor

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// judgeAccess judges what the ACLs permit to this client and to others.
func (f *Facts) judgeAccess() []Finding {
	if f.Main != nil || len(f.reached()) == 0 {
		return nil
	}
	var found []Finding
	switch {
	case f.Probe == nil:
	case errors.Is(f.Probe, zk.ErrNoAuth):
		found = append(found, finding(Warning, checkAccess, "give credentials (see --auth-file), or ask an administrator to permit CREATE and DELETE on it",
			"you may not create locks below %s", legible.Path(f.At)))
	case errors.Is(f.Probe, zk.ErrNoNode) && f.At == "/":
		return []Finding{finding(Critical, checkAccess, "correct the chroot, or create it: zklock does not create it, and no client can acquire a lock below it",
			"the chroot, the path after the servers' addresses, does not exist")}
	default:
		found = append(found, finding(Unknown, checkAccess, "read the servers' logs", "doctor could not create a znode below %s: %v", legible.Path(f.At), f.Probe))
	}
	found = append(found, f.judgeParents()...)
	found = append(found, f.judgeUnread()...)
	if Worst(found) != OK {
		return append(found, f.judgePlain()...)
	}
	what := "you may create, wait for, and release locks below " + legible.Path(f.At)
	if f.Missing && f.At != f.Prefix {
		what += "; " + legible.Path(f.Prefix) + " does not exist yet"
	}
	return append(append(found, finding(OK, checkAccess, "", "%s", what)), f.judgePlain()...)
}

// judgePlain finds passwords that go to another machine without encryption.
func (f *Facts) judgePlain() []Finding {
	if o := &f.Config.Zk; o.TLS != nil || o.DialContext != nil || len(o.Auth) == 0 {
		return nil
	}
	plain := slices.DeleteFunc(f.reached(), func(s Server) bool { return !remote(s.Address) })
	if len(plain) == 0 {
		return nil
	}
	return []Finding{finding(Warning, checkAccess, "use TLS (see --tls-ca): without TLS, an attacker on the network can read the password",
		"a digest password is sent without TLS to %s", names(plain)).at(plain...)}
}

// remote reports whether an address is on another machine.
func remote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false // a unix socket
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}

// judgeParents judges the ACLs of the parents of entries.
func (f *Facts) judgeParents() []Finding {
	var cannotLeave, cannotSee, open []string
	for _, p := range f.Parents {
		if errors.Is(p.Unread, zk.ErrNoAuth) {
			cannotSee = append(cannotSee, p.Path)
			continue
		}
		if worldPerms(p.ACL)&replaces != 0 {
			open = append(open, p.Path)
		}
		if f.Who == nil {
			continue
		}
		switch mine := f.permitted(p.ACL); {
		case mine&zk.PermRead == 0:
			cannotSee = append(cannotSee, p.Path)
		case mine&zk.PermCreate != 0 && mine&zk.PermDelete == 0:
			cannotLeave = append(cannotLeave, p.Path)
		}
	}
	var found []Finding
	add := func(level Level, paths []string, do, format string) {
		if len(paths) > 0 {
			slices.Sort(paths)
			found = append(found, finding(level, checkAccess, do, format, some(paths)).about(paths...))
		}
	}
	add(Critical, cannotLeave, "permit DELETE to every client that has CREATE: without it, a holder can release the lock only by ending its session",
		"you may create entries but not delete them in %s")
	add(Warning, cannotSee, "give credentials (see --auth-file), or permit READ: a client can wait for a lock only if it may read the lock's znode",
		"you may not read %s")
	replaceable := f.Replaceable
	if f.Private {
		open, replaceable = nil, nil
	}
	add(Note, open, "to prevent that, set ACLs: a client that has DELETE on a lock's znode can delete the holder's entry",
		"every client of the servers may break locks in %s")
	add(Note, replaceable, "close the znode above the locks, and create a permanent child with data "+
		"in it: see Access control in docs/guides/production.md",
		"every client of the servers may delete a closed znode while it is empty, and create it "+
			"with another ACL: %s")
	return found
}

// judgeUnread finds entries that this client may not read.
func (f *Facts) judgeUnread() []Finding {
	var paths []string
	for _, l := range f.Locks {
		if slices.ContainsFunc(l.Entries, func(e inspect.Entry) bool { return e.Mode != zklock.Stray && e.Token == 0 }) {
			paths = append(paths, l.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	return []Finding{finding(Warning, checkAccess, "give all clients of the lock READ on its entries (see --acl): a waiter watches the entry ahead of it, which needs READ",
		"you may not read some entries of %s", some(paths)).about(paths...)}
}

// worldPerms returns the permissions that an ACL grants to every client.
func worldPerms(acl []zk.ACL) (perms zk.Perm) {
	for _, a := range acl {
		if a.Scheme == "world" {
			perms |= a.Perms
		}
	}
	return perms
}

// permitted returns the permissions that an ACL gives to this client, as far as it is
// known: those of entries that name one of its identities, with or without a secret after
// a colon.
func (f *Facts) permitted(acl []zk.ACL) zk.Perm {
	perms := worldPerms(acl)
	for _, a := range acl {
		for _, who := range f.Who {
			user, _, _ := strings.Cut(a.ID, ":")
			switch {
			case who.Scheme == "super":
				return zk.PermAll
			case a.Scheme == who.Scheme && (a.ID == who.User || user == who.User):
				perms |= a.Perms
			case a.Scheme == "ip" && who.Scheme == "ip" && covers(a.ID, who.User):
				perms |= a.Perms
			}
		}
	}
	return perms
}

// covers reports whether a network in an ACL contains an address.
func covers(network, address string) bool {
	prefix, err := netip.ParsePrefix(network)
	addr, bad := netip.ParseAddr(address)
	return err == nil && bad == nil && prefix.Contains(addr)
}

// some lists the first paths, and says how many more there are.
func some(paths []string) string {
	const most = 3
	var names []string
	for _, p := range paths[:min(most, len(paths))] {
		names = append(names, legible.Path(p))
	}
	text := strings.Join(names, ", ")
	if more := len(paths) - most; more > 0 {
		text += " and " + cli.Count(more, "other")
	}
	return text
}
