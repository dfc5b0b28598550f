package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/zk"
)

// ACLHelp is the part of the long help about --acl, for the commands that create znodes.
const ACLHelp = `ACLs: --acl sets the ACL of all new znodes, including missing parents. Existing
znodes keep their ACL. Every client of a lock needs c, d, and r on its path. A
missing parent above the lock's znode also lets everyone create locks in it, if
everyone may create znodes where it is created.
  open          everyone has all permissions
  creator       the credentials of the creator have all permissions
  creator+read  like creator, and everyone can read
  SCHEME:ID:PERMISSIONS,...
                a list in the syntax of ZooKeeper's setAcl command, with
                the permissions c (create), d (delete), r (read),
                w (write), and a (admin)
Without --acl and without credentials, a new znode is open. Without --acl and
with credentials, a new znode gets the ACL of its parent, plus all permissions
for its creator. If the credentials lack the permission a, the servers hide the
digest users of that ACL, and the new znode's ACL omits them. If several of
those users share a lock, set --acl.`

// Names of common ACLs.
const (
	aclOpen        = "open"
	aclCreator     = "creator"
	aclCreatorRead = "creator+read"
)

// ACLValue is the flag --acl. The zero value means the default of the library.
type ACLValue struct {
	List []zk.ACL // nil if the flag is not given
	text string
}

// Flag adds --acl to a command, with completion.
func (a *ACLValue) Flag(c *cobra.Command) {
	c.Flags().Var(a, "acl", "`ACL` of new znodes, such as open or creator")
	CompleteFlagWords(c, "acl", []string{aclOpen, aclCreator, aclCreatorRead})
}

// Rejection returns why the servers reject the ACL of a new znode.
func (a *ACLValue) Rejection() string {
	if a.List == nil {
		return "the client may not read its znode, and the servers do not accept the credentials; see --auth-file and ZKLOCK_AUTH"
	}
	return "the servers reject --acl: an ACL for creator or auth needs credentials; see --auth-file and ZKLOCK_AUTH"
}

// Type returns the name of the argument in the help.
func (*ACLValue) Type() string { return "ACL" }

// String returns the argument.
func (a *ACLValue) String() string { return a.text }

// Set parses the argument.
func (a *ACLValue) Set(text string) error {
	switch text {
	case aclOpen:
		a.List = zk.OpenACL()
	case aclCreator:
		a.List = zk.CreatorACL()
	case aclCreatorRead:
		a.List = append(zk.CreatorACL(), zk.ReadACL()...)
	default:
		list, err := parseACL(text)
		if err != nil {
			return err
		}
		a.List = list
	}
	a.text = text
	return nil
}

// aclEntry matches one entry at the beginning of a list. An ID can contain colons and
// commas, as certificate names do.
var aclEntry = regexp.MustCompile(`^([a-z0-9]+):(.*?):([cdrwa]+)(?:,|$)`)

// parseACL parses a list in the syntax of zkCli's setAcl. Its errors quote no list, because that
// can contain digests.
func parseACL(text string) ([]zk.ACL, error) {
	perms := map[rune]zk.Perm{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}
	var list []zk.ACL
	for rest := text; rest != "" || len(list) == 0; {
		m := aclEntry.FindStringSubmatch(rest)
		if m == nil && strings.Contains(text, ":") {
			return nil, fmt.Errorf("entry %d is not SCHEME:ID:PERMISSIONS with permissions of cdrwa",
				len(list)+1)
		}
		if m == nil {
			return nil, OneOf(text, "ACL", []string{aclOpen, aclCreator, aclCreatorRead, "SCHEME:ID:PERMISSIONS,... with permissions of cdrwa"})
		}
		entry := zk.ACL{Scheme: m[1], ID: m[2]}
		for _, letter := range m[3] {
			entry.Perms |= perms[letter]
		}
		list = append(list, entry)
		rest = rest[len(m[0]):]
		if rest == "" && strings.HasSuffix(m[0], ",") {
			return nil, errors.New("an ACL must not end with a comma")
		}
	}
	return list, nil
}
