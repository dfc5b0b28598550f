package zkkerberos

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// noKDC is a krb5.conf whose KDC never answers.
const noKDC = "[libdefaults]\n default_realm = EXAMPLE.COM\n rdns = false\n[realms]\n EXAMPLE.COM = {\n  kdc = 127.0.0.1:1\n }\n"

// files returns the path of a function that writes files.
func files(t *testing.T) func(name string, b []byte) string {
	dir := t.TempDir()
	return func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// keytabOf returns a keytab of a principal.
func keytabOf(p principal) []byte {
	kt := keytab.New()
	if err := kt.AddEntry(p.name.PrincipalNameString(), p.realm, "secret", time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		panic(err)
	}
	return must(kt.Marshal())
}

// ccacheOf returns a credential cache of version 4 with a ticket for each server.
func ccacheOf(end time.Time, client principal, t *ticket, servers ...principal) []byte {
	b := []byte{5, 4, 0, 0}
	u32 := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	text := func(s string) { u32(len(s)); b = append(b, s...) }
	name := func(p principal) {
		u32(1)
		u32(len(p.name.NameString))
		text(p.realm)
		for _, s := range p.name.NameString {
			text(s)
		}
	}
	name(client)
	for _, s := range servers {
		name(client)
		name(s)
		b = binary.BigEndian.AppendUint16(b, uint16(t.key.KeyType))
		text(string(t.key.KeyValue))
		for range 2 {
			u32(int(end.Add(-time.Hour).Unix()))
		}
		u32(int(end.Unix()))
		u32(0)
		b = append(b, 0)
		u32(0)
		u32(0)
		u32(0)
		text(string(must(t.ticket.Marshal())))
		u32(0)
	}
	return b
}

var tgs = principal{granting("EXAMPLE.COM"), "EXAMPLE.COM"}

// start starts an exchange with the host zk1.
func start(t *testing.T, o Options) (zk.SASLExchange, error) {
	t.Helper()
	m, err := New(&o)
	if err != nil {
		return nil, err
	}
	return m.Start(t.Context(), "zk1", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2181})
}

// A ticket for the server in the credential cache needs no KDC.
func TestTicketOfCredentialCache(t *testing.T) {
	write := files(t)
	conf := write("krb5.conf", []byte(noKDC))
	a := new(acceptor)
	ticket := a.newTicket(etypeID.AES256_CTS_HMAC_SHA1_96)
	path := write("cache", ccacheOf(time.Now().Add(time.Hour), app, ticket, tgs, server))
	t.Setenv("KRB5CCNAME", "FILE:"+path)
	t.Setenv("KRB5_CONFIG", conf+".none"+string(filepath.ListSeparator)+conf)
	for _, o := range []Options{{}, {CCache: path, Principal: "app"}, {Config: conf, Server: "zookeeper/zk1@EXAMPLE.COM"}} {
		x, err := start(t, o)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := x.Step(nil)
		if err != nil || a.accept(token) != nil || a.auth.CName.PrincipalNameString() != "app" {
			t.Errorf("%v, %v", err, a.accept(token))
		}
	}
}

// TestFilesOfOtherUsersAreRefused checks that a keytab or a credential cache that other users
// can read or change is refused, as a file of credentials is.
func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files do not show which users may read them")
	}
	write := files(t)
	conf := write("krb5.conf", []byte(noKDC))
	ticket := new(acceptor).newTicket(etypeID.AES256_CTS_HMAC_SHA1_96)
	keys := write("keytab", keytabOf(app))
	cache := write("cache", ccacheOf(time.Now().Add(time.Hour), app, ticket, tgs, server))
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o620: true, 0o604: true, 0o602: true, 0o666: true} {
		for file, opts := range map[string]Options{keys: {Config: conf, Keytab: keys}, cache: {Config: conf, CCache: cache}} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			m, err := New(&opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.environment()
			want := fmt.Sprintf("%s: other users could read or change it (mode %04o): chmod 600 it", file, mode)
			if got := errors.Is(err, zk.ErrInvalidOptions) && strings.Contains(err.Error(), want); got != refused || !refused && err != nil {
				t.Errorf("%04o: %v", mode, err)
			}
		}
	}
}

// Each error says which file or principal cannot be used, why, and what to do.
func TestUnusableCredentials(t *testing.T) {
	write := files(t)
	conf := write("krb5.conf", []byte(noKDC))
	ticket := new(acceptor).newTicket(etypeID.AES256_CTS_HMAC_SHA1_96)
	soon := time.Now().Add(time.Hour)
	keys := write("keytab", keytabOf(app))
	t.Setenv("KRB5CCNAME", "KEYRING:persistent:0")
	t.Setenv("KRB5_CONFIG", filepath.Join(t.TempDir(), "none"))
	for name, tt := range map[string]struct {
		opts Options
		want string
	}{
		"two sources":        {Options{Keytab: keys, CCache: "x"}, "a keytab and a credential cache are given"},
		"no principal":       {Options{Principal: "a b"}, "a principal has no space"},
		"no realm":           {Options{Principal: "app@"}, "write NAME@REALM"},
		"no server":          {Options{Server: "zookeeper//x"}, "write NAME@REALM"},
		"no krb5.conf":       {Options{Keytab: keys}, "name the file krb5.conf with KRB5_CONFIG"},
		"broken krb5.conf":   {Options{Keytab: keys, Config: write("broken", []byte("[libdefaults]\n what\n"))}, "libdefaults section"},
		"no keytab":          {Options{Config: conf, Keytab: keys + ".none"}, "read the keytab " + keys + ".none: no such file or directory"},
		"empty keytab":       {Options{Config: conf, Keytab: write("empty", nil)}, "this is not a keytab, or it is empty"},
		"wrong principal":    {Options{Config: conf, Keytab: keys, Principal: "ann"}, "it has no key of ann@EXAMPLE.COM; its first entry is app@EXAMPLE.COM"},
		"another realm":      {Options{Config: conf, Keytab: keys, Principal: "app@B.COM"}, "it has no key of app@B.COM"},
		"keyring":            {Options{Config: conf}, "only caches in files are supported"},
		"no cache":           {Options{Config: conf, CCache: keys + ".none"}, "no such file or directory; run kinit, or use a keytab"},
		"a cache's keytab":   {Options{Config: conf, CCache: keys}, "this is not a credential cache; run kinit"},
		"expired":            {Options{Config: conf, CCache: write("old", ccacheOf(time.Now().Add(-time.Second), app, ticket, tgs, server))}, "its ticket expired at "},
		"no granting ticket": {Options{Config: conf, CCache: write("none", ccacheOf(soon, app, ticket))}, "it has no ticket-granting ticket; run kinit"},
		"another user":       {Options{Config: conf, CCache: write("app", ccacheOf(soon, app, ticket, tgs)), Principal: "ann"}, "run kinit ann@EXAMPLE.COM"},
	} {
		_, err := start(t, tt.opts)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, zk.ErrInvalidOptions) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If no KDC answers, the client tries again.
func TestNoKDC(t *testing.T) {
	write := files(t)
	o := Options{Config: write("krb5.conf", []byte(noKDC)), Keytab: write("keytab", keytabOf(app))}
	_, err := start(t, o)
	if err == nil || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, zk.ErrInvalidOptions) || !strings.Contains(err.Error(), "log in as app@EXAMPLE.COM: no KDC of the realm answered") {
		t.Error(err)
	}
	// A KDC that accepts the connection and is silent does not delay the client longer
	// than its own time limit.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o.Config = write("silent.conf", []byte(strings.ReplaceAll(noKDC, "127.0.0.1:1", l.Addr().String())))
	m, err := New(&o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() { // cancels when the login has connected, and keeps the connection until it returns
		if conn, err := l.Accept(); err == nil {
			defer conn.Close()
		}
		cancel()
		<-returned
	}()
	_, err = m.Start(ctx, "zk1", nil)
	close(returned)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no KDC answered in time") {
		t.Error(err)
	}
}

// A malformed file is an error and no panic, wherever it ends.
func TestTruncatedFiles(t *testing.T) {
	ticket := new(acceptor).newTicket(etypeID.AES256_CTS_HMAC_SHA1_96)
	for b := ccacheOf(time.Now(), app, ticket, tgs); len(b) > 0; b = b[:len(b)-1] {
		_ = parse(new(credentials.CCache), b)
	}
	for b := keytabOf(app); len(b) > 0; b = b[:len(b)-1] {
		_ = parse(keytab.New(), b)
	}
	if err := parse(new(credentials.CCache), nil); !errors.Is(err, errMalformed) {
		t.Error(err)
	}
}

// A mechanism prints names and no keys.
func TestKeysAreNotPrinted(t *testing.T) {
	m, err := New(&Options{Principal: "app", Keytab: "/etc/app.keytab"})
	if err != nil {
		t.Fatal(err)
	}
	m.tickets["x"] = &ticket{ticket: messages.Ticket{Realm: "SeCrEt"}}
	m.tickets["x"].key.KeyValue = []byte("SeCrEt")
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %+v %#v %s %s", m, m, m, zk.Options{SASL: m}.SASL, text)
	if strings.Contains(got, "SeCrEt") || strings.Contains(got, fmt.Sprint([]byte("SeCrEt"))) || !strings.Contains(got, "app.keytab") {
		t.Error(got)
	}
}

// A failed lookup of a server's name is an error that another attempt can avoid. Only if the
// address has no name, the name in the connection string counts.
func TestServerNameLookupFails(t *testing.T) {
	former := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = former })
	down := errors.New("the resolver is down")
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, down }}
	name, err := canonical(t.Context(), "zk1", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2181})
	if err == nil || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, zk.ErrInvalidOptions) {
		t.Errorf("%q, %v", name, err)
	}
	if err := unlessNotFound(&net.DNSError{IsNotFound: true}); err != nil {
		t.Error(err)
	}
}

// TestLockedPrincipalIsTriedAgain: a KDC locks a principal after wrong passwords of any client,
// often for some minutes. So that refusal does not end a client, and neither do failures of the KDC.
func TestLockedPrincipalIsTriedAgain(t *testing.T) {
	for text, final := range map[string]bool{
		"KRB Error: (18) KDC_ERR_CLIENT_REVOKED Clients credentials have been revoked":      false,
		"KRB Error: (29) KDC_ERR_SVC_UNAVAILABLE A service is not available":                false,
		"KRB Error: (37) KRB_AP_ERR_SKEW Clock skew too great":                              false,
		"KRB Error: (6) KDC_ERR_C_PRINCIPAL_UNKNOWN Client not found in Kerberos database":  true,
		"KRB Error: (24) KDC_ERR_PREAUTH_FAILED Pre-authentication information was invalid": true,
	} {
		err := kdcError("log in as", "app", errors.New(text))
		if errors.Is(err, zk.ErrAuthFailed) != final || errors.Is(err, zk.ErrInvalidOptions) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestErrorOfHostileKDCIsOneLegibleLine checks that the text of an answer that no key protects
// changes no terminal, forges no line of a log, and is bounded.
func TestErrorOfHostileKDCIsOneLegibleLine(t *testing.T) {
	const hostile = "x\x1b[31m\n\u202ezklock: forged\r"
	long := strings.Repeat("\x1b", 3<<20)
	for name, err := range map[string]error{
		"answer":      messages.NewKRBError(app.name, app.realm, errorcode.KRB_ERR_GENERIC, hostile),
		"long answer": messages.NewKRBError(app.name, app.realm, errorcode.KRB_ERR_GENERIC, hostile+long),
		"no answer":   krberror.New(krberror.NetworkingError, hostile+long),
	} {
		text := kdcError("log in as", "ann\x1b", err).Error()
		if legible.Text(text) != text || len(text) > 16<<10 {
			t.Errorf("%s: %d bytes: %.300q", name, len(text), text)
		}
		if !strings.Contains(text, `x\x1b[31m\n\u202ezklock: forged\r`) {
			t.Errorf("%s: %.300q", name, text)
		}
	}
}
