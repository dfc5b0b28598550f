package zkkerberos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/ownership"
)

// maxFile limits the size of each file.
const maxFile = 1 << 20

// principal is a name in a realm.
type principal struct {
	name  types.PrincipalName
	realm string // may be empty
}

// String returns the name as users write it.
func (p principal) String() string {
	if p.realm == "" {
		return p.name.PrincipalNameString()
	}
	return p.name.PrincipalNameString() + "@" + p.realm
}

// parsePrincipal parses NAME, NAME@REALM, or SERVICE/HOST@REALM.
func parsePrincipal(text string) (principal, error) {
	name, realm, hasRealm := strings.Cut(text, "@")
	parts := strings.Split(name, "/")
	for _, r := range text {
		if r <= ' ' || r == 0x7f || r == '\\' {
			return principal{}, errors.New("a principal has no space, control character, or backslash")
		}
	}
	if slices.Contains(parts, "") || hasRealm && realm == "" || strings.Contains(realm, "@") {
		return principal{}, errors.New("write NAME@REALM")
	}
	return principal{types.PrincipalName{NameType: nametype.KRB_NT_PRINCIPAL, NameString: parts}, realm}, nil
}

// ticket is what authenticates a client to a server.
type ticket struct {
	client principal
	ticket messages.Ticket
	key    types.EncryptionKey
	end    time.Time
}

// environment is what the files say at present.
type environment struct {
	config *config.Config
	client principal
	file   string              // the keytab or the credential cache
	keytab *keytab.Keytab      // nil with a credential cache
	ccache *credentials.CCache // nil with a keytab
}

// environment reads the files.
func (m *Mechanism) environment() (*environment, error) {
	conf, err := readConfig(m.opts.Config)
	if err != nil {
		return nil, err
	}
	env := &environment{config: conf}
	if m.opts.Keytab != "" {
		err = env.readKeytab(m.opts.Keytab)
	} else {
		err = env.readCCache(m.opts.CCache)
	}
	if err != nil {
		return nil, err
	}
	return env, env.choose(m.opts.Principal)
}

// readConfig reads krb5.conf.
func readConfig(file string) (*config.Config, error) {
	const op = "read"
	if file == "" {
		file = "/etc/krb5.conf"
		list := filepath.SplitList(os.Getenv("KRB5_CONFIG"))
		for i, name := range list {
			if _, err := os.Stat(name); err == nil || i == len(list)-1 {
				file = name
				break
			}
		}
	}
	text, _, err := inputfile.Read(file, maxFile)
	if err != nil {
		return nil, unusable(op, file, fileProblem(err)+"; name the file krb5.conf with KRB5_CONFIG")
	}
	conf, err := parseConfig(string(text))
	if err != nil {
		return nil, unusable(op, file, err.Error())
	}
	return conf, nil
}

// parseConfig parses krb5.conf.
func parseConfig(text string) (conf *config.Config, err error) {
	defer guard(&err)
	conf, err = config.NewFromString(text)
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, err
	}
	// Unlike gokrb5, libkrb5 looks KDCs up in DNS by default.
	if !strings.Contains(text, "dns_lookup_kdc") {
		conf.LibDefaults.DNSLookupKDC = true
	}
	conf.LibDefaults.UDPPreferenceLimit = 1 // TCP: an answer that is lost costs 5 s by UDP
	return conf, nil
}

// fileProblem returns the cause of a file error without the name of the file.
func fileProblem(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// readKeytab reads a keytab. No error has text of gokrb5, which quotes the keys.
func (e *environment) readKeytab(file string) error {
	const op = "read the keytab"
	b, info, err := inputfile.Read(file, maxFile)
	if err != nil {
		return unusable(op, file, fileProblem(err))
	}
	if problem := ownership.Exposed(info); problem != "" {
		return unusable(op, file, problem)
	}
	e.file, e.keytab = file, keytab.New()
	if err := parse(e.keytab, b); err != nil || len(e.keytab.Entries) == 0 {
		return unusable(op, file, "this is not a keytab, or it is empty; export it again, for example with kadmin ktadd")
	}
	return nil
}

// parse parses a file of gokrb5.
func parse(file interface{ Unmarshal([]byte) error }, b []byte) (err error) {
	defer guard(&err)
	return file.Unmarshal(b)
}

// readCCache reads a credential cache.
func (e *environment) readCCache(name string) error {
	const op = "read the credential cache"
	if name == "" {
		name = os.Getenv("KRB5CCNAME")
	}
	if name == "" {
		name = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	file := name
	if kind, rest, ok := strings.Cut(name, ":"); ok && len(kind) > 1 {
		if kind != "FILE" {
			return unusable(op, name, "only caches in files are supported; run kinit -c FILE:NAME, and set KRB5CCNAME to FILE:NAME")
		}
		file = rest
	}
	b, info, err := inputfile.Read(file, maxFile)
	if err != nil {
		return unusable(op, file, fileProblem(err)+"; run kinit, or use a keytab")
	}
	if uid, other := ownership.Other(info); other {
		return unusable(op, file, fmt.Sprintf("it belongs to user %d, who could change it; run kinit -c FILE:NAME, and set KRB5CCNAME to FILE:NAME", uid))
	}
	if problem := ownership.Exposed(info); problem != "" {
		return unusable(op, file, problem)
	}
	e.file, e.ccache = file, new(credentials.CCache)
	if err := parse(e.ccache, b); err != nil || e.ccache.DefaultPrincipal.Realm == "" {
		return unusable(op, file, "this is not a credential cache; run kinit")
	}
	return nil
}

// choose sets the client's principal.
func (e *environment) choose(name string) error {
	if e.ccache != nil {
		e.client = principal{e.ccache.DefaultPrincipal.PrincipalName, e.ccache.DefaultPrincipal.Realm}
	} else {
		first := e.keytab.Entries[0].Principal
		e.client = principal{types.PrincipalName{NameType: nametype.KRB_NT_PRINCIPAL, NameString: first.Components}, first.Realm}
	}
	if name == "" {
		return nil
	}
	want, err := parsePrincipal(name)
	if err != nil {
		return unusable("parse principal", name, err.Error())
	}
	if want.realm == "" {
		want.realm = e.config.LibDefaults.DefaultRealm
	}
	switch {
	case e.ccache != nil && e.client.String() != want.String():
		return unusable("use the credential cache", e.file, "its tickets are for "+e.client.String()+", not for "+want.String()+"; run kinit "+want.String())
	case e.keytab != nil && !e.hasKey(want):
		return unusable("use the keytab", e.file, "it has no key of "+want.String()+"; its first entry is "+e.client.String())
	}
	e.client = want
	return nil
}

// hasKey reports whether the keytab has a key of p.
func (e *environment) hasKey(p principal) bool {
	for _, k := range e.keytab.Entries {
		if k.Principal.Realm == p.realm && slices.Equal(k.Principal.Components, p.name.NameString) {
			return true
		}
	}
	return false
}

// source identifies the ticket-granting ticket of a credential cache.
func (e *environment) source() string {
	if e.ccache == nil {
		return ""
	}
	if tgt, ok := e.ccache.GetEntry(granting(e.client.realm)); ok {
		return string(tgt.Ticket)
	}
	return e.file
}

// granting returns the principal of the ticket-granting service of a realm.
func granting(realm string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
}

// ticketFor gets a ticket for the server.
func (e *environment) ticketFor(server principal) (t *ticket, err error) {
	defer func() {
		var known *Error
		if err != nil && !errors.As(err, &known) {
			err = &Error{Op: "get a ticket for", Name: server.String(), Err: err}
		}
	}()
	defer guard(&err)
	if t, err = e.cached(server); t != nil || err != nil {
		return t, err
	}
	kt := e.keytab
	if kt == nil {
		kt = keytab.New() // never used: the ticket-granting ticket is at hand
	}
	cl := client.NewWithKeytab(e.client.name.PrincipalNameString(), e.client.realm, kt, e.config)
	defer cl.Destroy()
	tgt, err := e.granting(cl)
	if err != nil {
		return nil, err
	}
	if server.realm != e.client.realm {
		if tgt, err = e.next(cl, granting(server.realm), e.client.realm, tgt); err != nil {
			return nil, err
		}
	}
	return e.next(cl, server.name, server.realm, tgt)
}

// cached returns the ticket for the server in the credential cache, or nil. It returns an
// error if the cache has no valid ticket at all.
func (e *environment) cached(server principal) (*ticket, error) {
	if e.ccache == nil {
		return nil, nil
	}
	for _, c := range e.ccache.GetEntries() {
		if c.Server.Realm == server.realm && c.Server.PrincipalName.Equal(server.name) && time.Until(c.EndTime) > margin {
			return e.unpack(c)
		}
	}
	tgt, ok := e.ccache.GetEntry(granting(e.client.realm))
	switch {
	case !ok:
		return nil, unusable("use the credential cache", e.file, "it has no ticket-granting ticket; run kinit")
	case time.Until(tgt.EndTime) <= 0:
		return nil, unusable("use the credential cache", e.file,
			"its ticket expired at "+tgt.EndTime.UTC().Format(time.RFC3339)+"; run kinit, or use a keytab, which does not expire")
	}
	return nil, nil
}

// unpack returns a ticket of the credential cache.
func (e *environment) unpack(c *credentials.Credential) (*ticket, error) {
	t := &ticket{client: e.client, key: c.Key, end: c.EndTime}
	if err := t.ticket.Unmarshal(c.Ticket); err != nil {
		return nil, unusable("read the credential cache", e.file, "its tickets are malformed; run kinit")
	}
	return t, nil
}

// granting returns a ticket-granting ticket for the client's realm: that of the credential
// cache, or a new one.
func (e *environment) granting(cl *client.Client) (*ticket, error) {
	if e.ccache != nil {
		tgt, _ := e.ccache.GetEntry(granting(e.client.realm)) // see cached
		return e.unpack(tgt)
	}
	req, err := messages.NewASReqForTGT(e.client.realm, e.config, e.client.name)
	if err != nil {
		return nil, err
	}
	rep, err := cl.ASExchange(e.client.realm, req, 0)
	if err != nil {
		return nil, kdcError("log in as", e.client.String(), err)
	}
	return &ticket{e.client, rep.Ticket, rep.DecryptedEncPart.Key, rep.DecryptedEncPart.EndTime}, nil
}

// next asks the KDC of a realm for a ticket, by means of a ticket-granting ticket.
func (e *environment) next(cl *client.Client, server types.PrincipalName, realm string, tgt *ticket) (*ticket, error) {
	_, rep, err := cl.TGSREQGenerateAndExchange(server, realm, tgt.ticket, tgt.key, false)
	if err != nil {
		return nil, kdcError("get a ticket for", principal{server, realm}.String(), err)
	}
	return &ticket{e.client, rep.Ticket, rep.DecryptedEncPart.Key, rep.DecryptedEncPart.EndTime}, nil
}
