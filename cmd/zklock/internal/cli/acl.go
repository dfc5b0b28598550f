package cli

import (
	"errors"
	"regexp"
	"strings"

	"github.com/zklock/zklock/zk"
)

// aclHelp tells of --acl.
const aclHelp = `Without --acl, a znode that is made with credentials is as closed as the znode
that it is made in: it gets that one's ACL, and the creator all rights. Digest
users whom the servers hide, because the credentials do not include the right a,
are left out: if several of them share a lock, give --acl. Made without
credentials, a znode is open to everybody. With --acl, that is the ACL of all
znodes that are made, missing parents included: open is for everybody, creator
for the credentials that made them, creator+read lets everybody read besides; or
a list as ZooKeeper's own tools take it, SCHEME:ID:PERMISSIONS,..., of the
permissions c (create), d (delete), r (read), w (write), a (admin). Every client
of a lock needs c, d and r on its path. Existing znodes keep their ACL.`

// Names of lists of permissions.
const (
	aclOpen        = "open"
	aclCreator     = "creator"
	aclCreatorRead = "creator+read"
)

// aclValue is the flag --acl. The zero value leaves the choice to the library.
type aclValue struct {
	list []zk.ACL // nil if the flag is not given
	text string
}

// Type is what help calls the argument.
func (*aclValue) Type() string { return "ACL" }

// String is the argument.
func (a *aclValue) String() string { return a.text }

// Set reads the flag's argument.
func (a *aclValue) Set(text string) error {
	switch text {
	case aclOpen:
		a.list = zk.OpenACL()
	case aclCreator:
		a.list = zk.CreatorACL()
	case aclCreatorRead:
		a.list = append(zk.CreatorACL(), zk.ReadACL()...)
	default:
		list, err := parseACL(text)
		if err != nil {
			return err
		}
		a.list = list
	}
	a.text = text
	return nil
}

// aclEntry is one entry at the beginning of a list. An ID may have colons and commas in
// it, as names in certificates do.
var aclEntry = regexp.MustCompile(`^([a-z0-9]+):(.*?):([cdrwa]+)(?:,|$)`)

// parseACL reads a list as zkCli's setAcl takes it.
func parseACL(text string) ([]zk.ACL, error) {
	perms := map[rune]zk.Perm{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}
	var list []zk.ACL
	for rest := text; rest != "" || len(list) == 0; {
		m := aclEntry.FindStringSubmatch(rest)
		if m == nil {
			return nil, oneOf(text, "ACL", []string{aclOpen, aclCreator, aclCreatorRead, "SCHEME:ID:PERMISSIONS,... with permissions of cdrwa"})
		}
		entry := zk.ACL{Scheme: m[1], ID: m[2]}
		for _, letter := range m[3] {
			entry.Perms |= perms[letter]
		}
		list = append(list, entry)
		rest = rest[len(m[0]):]
		if rest == "" && strings.HasSuffix(m[0], ",") {
			return nil, errors.New("an ACL does not end with a comma")
		}
	}
	return list, nil
}
