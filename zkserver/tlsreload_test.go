package zkserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

// serving returns the serial number of the certificate that a new connection
// is shown, and ends the test if there is no handshake.
func (b *tlsFixture) serving(certs ...testcert.Pair) string {
	b.t.Helper()
	c := b.over(b.dial("2281"), certs...)
	if err := c.Handshake(); err != nil {
		b.t.Fatalf("no handshake: %v; the log:\n%s", err, b.log)
	}
	c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// serial is that of a pair.
func serial(p testcert.Pair) string { return p.TLS.Leaf.SerialNumber.String() }

// reloads checks the counters.
func (b *tlsFixture) reloads(good, bad int64) {
	b.t.Helper()
	if st := b.srv.Stats(); st.TLSReloads != good || st.TLSReloadFailures != bad {
		b.t.Errorf("%d reloads and %d failures, want %d and %d; the log:\n%s", st.TLSReloads, st.TLSReloadFailures, good, bad, b.log)
	}
}

// put replaces a file by another.
func put(t testing.TB, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".new", content, 0o600))
	must(t, os.Rename(path+".new", path))
}

// overwrite overwrites a file in its place.
func overwrite(t testing.TB, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o600))
}

func TestTLSReload(t *testing.T) {
	for name, replace := range map[string]func(testing.TB, string, []byte){"renamed": put, "in place": overwrite} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			b.serve("2281", Secure)
			first := b.serving()
			old := b.must(b.session("2281"))
			b.reloads(0, 0)
			next := b.ca.Server(tlsHost)
			// One file after the other: between them there is no pair.
			replace(t, b.files.Cert, next.Cert)
			for range 3 {
				if got := b.serving(); got != first {
					t.Errorf("%s: a certificate without its key is served: %s", name, got)
				}
			}
			b.reloads(0, 1)
			replace(t, b.files.Key, next.Key)
			if got := b.serving(); got != serial(next) {
				t.Errorf("%s: the new certificate is not served", name)
			}
			b.serving()
			b.reloads(1, 1)
			if !old.exists("/") {
				t.Errorf("%s: a connection from before the reload has ended", name)
			}
		})
	}
}

// TestTLSReloadThroughLinks replaces a directory by exchanging a link, as
// Kubernetes does with the volumes of secrets.
func TestTLSReloadThroughLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		dir := t.TempDir()
		exchange := func(version string, p testcert.Pair) {
			must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			testcert.Write(t, filepath.Join(dir, version), "tls.crt", p.Cert, "tls.key", p.Key)
			if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
				t.Skipf("no symbolic links: %v", err)
			}
			must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}
		one, two := b.ca.Server(tlsHost), b.ca.Server(tlsHost)
		exchange("..1", one)
		b.files.Cert, b.files.Key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		for _, name := range []string{"tls.crt", "tls.key"} {
			must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		}
		b.serve("2281", Secure)
		if got := b.serving(); got != serial(one) {
			t.Error("not the first certificate")
		}
		exchange("..2", two)
		if got := b.serving(); got != serial(two) {
			t.Error("not the second certificate")
		}
		b.reloads(1, 0)
	})
}

// TestTLSReloadIgnoresUnchangedContent touches the files, and writes what they had.
func TestTLSReloadIgnoresUnchangedContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		b.serve("2281", Secure)
		first := b.serving()
		content, err := os.ReadFile(b.files.Cert)
		if err != nil {
			t.Fatal(err)
		}
		put(t, b.files.Cert, content)
		if b.serving() != first {
			t.Error("another certificate")
		}
		b.reloads(0, 0)
	})
}

func TestTLSReloadKeepsFilesAfterError(t *testing.T) {
	for _, row := range []struct {
		name string
		harm func(*testing.T, *tlsFixture)
		want string
	}{
		{"no file", func(t *testing.T, b *tlsFixture) { os.Remove(b.files.Key) }, "no such file"},
		{"emptied", func(t *testing.T, b *tlsFixture) { put(t, b.files.Cert, nil) }, "failed to find any PEM data"},
		{"cut off", func(t *testing.T, b *tlsFixture) { put(t, b.files.Key, b.ca.Server("x").Key[:50]) }, "key.pem"},
		{"no CA", func(t *testing.T, b *tlsFixture) { put(t, b.files.CA, []byte("oops")) }, "ca.pem contains no certificate"},
		{"encrypted", func(t *testing.T, b *tlsFixture) { put(t, b.files.Key, encryptedKey()) }, "openssl pkey"},
		{"a directory", func(t *testing.T, b *tlsFixture) { os.Remove(b.files.Key); os.Mkdir(b.files.Key, 0o700) }, "key.pem"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
			b.serve("2281", Secure)
			ann := b.ca.Client("ann")
			first := b.serving(ann)
			row.harm(t, b)
			for range 5 {
				if b.serving(ann) != first {
					t.Errorf("%s: another certificate", row.name)
				}
			}
			b.reloads(0, 1)
			log := b.log.String()
			if strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, row.want) {
				t.Errorf("%s: want one warning with %q, got:\n%s", row.name, row.want, log)
			}
			if strings.Contains(log, "BEGIN") {
				t.Errorf("%s: the log has what is in the files", row.name)
			}
			next := b.ca.Server(tlsHost)
			os.Remove(b.files.Key)
			put(t, b.files.Key, next.Key)
			put(t, b.files.Cert, next.Cert)
			put(t, b.files.CA, b.ca.PEM)
			if b.serving(ann) != serial(next) {
				t.Errorf("%s: good files are not taken after bad ones", row.name)
			}
			b.reloads(1, 1)
		})
	}
}

// encryptedKey is the form of a key under a password.
func encryptedKey() []byte {
	return []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH0MF8GCSqGSIb3DQEFDTBSMDEGCSqG\n-----END ENCRYPTED PRIVATE KEY-----\n")
}

// TestTLSReloadAppliesRemovedCA: no client is accepted whose CA was removed, not even by
// resuming an earlier TLS session.
func TestTLSReloadAppliesRemovedCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
		b.serve("2281", Secure)
		other := testcert.New(t, "other")
		ann, bob := b.ca.Client("ann"), other.Client("bob")
		cache := tls.NewLRUClientSessionCache(10)
		login := func(p testcert.Pair) error {
			_, err := b.login(tls.Client(b.dial("2281"), &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, ClientSessionCache: cache,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &p.TLS, nil }}))
			return err
		}
		must(t, login(ann))
		if login(bob) == nil {
			t.Error("bob is served before his CA is known")
		}
		put(t, b.files.CA, other.PEM)
		if login(ann) == nil {
			t.Error("ann is served after her CA was taken out")
		}
		if err := login(bob); err != nil {
			t.Errorf("bob is not served: %v", err)
		}
		b.reloads(1, 0)
	})
}

// TestCutClientsAfterCAChange: with CutClients, a connection ends when its client's
// certificate is no longer trusted, and no other connection does.
func TestCutClientsAfterCAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
		b.serve("2281", Secure) // these stay
		stays := b.must(b.session("2281", b.ca.Client("ann")))
		b.files.CutClients = true
		b.serve("2282", Secure)
		other := testcert.New(t, "other")
		put(t, b.files.CA, append(bytes.Clone(b.ca.PEM), other.PEM...))
		ann, bob := b.must(b.session("2282", b.ca.Client("ann"))), b.must(b.session("2282", other.Client("bob")))
		put(t, b.files.CA, other.PEM)
		carl := b.must(b.session("2282", other.Client("carl")))
		ann.wantClosed()
		for name, c := range map[string]*rawClient{"bob": bob, "carl": carl, "ann at the other port": stays} {
			if _, err := c.try(wire.OpPing, nil); err != nil {
				t.Errorf("%s was cut: %v", name, err)
			}
		}
		brief := b.must(b.session("2282", other.Issue(testcert.Request{Subject: pkix.Name{CommonName: "brief"}, Expires: time.Now().Add(20 * time.Minute)})))
		time.Sleep(21 * time.Minute) // less than the sessions' timeout
		brief.wantClosed()
		if _, err := bob.try(wire.OpPing, nil); err != nil {
			t.Errorf("bob was cut with a certificate that has not expired: %v", err)
		}
	})
}

// TestExpiryFollowsTheWallClock: certificates expire by a clock that may be set, so it is
// read each minute.
func TestExpiryFollowsTheWallClock(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		left, wait time.Duration
		expired    bool
	}{
		{24 * time.Hour, time.Minute, false},
		{20 * time.Second, 21 * time.Second, false},
		{0, time.Second, false},
		{-time.Nanosecond, time.Minute, true},
		{-24 * time.Hour, time.Minute, true},
	} {
		wait, expired := untilExpiry(now.Add(tt.left).Round(0), now)
		if wait != tt.wait || expired != tt.expired {
			t.Errorf("%v before the end: wait %v, expired %v; want %v, %v", tt.left, wait, expired, tt.wait, tt.expired)
		}
	}
}

// TestTLSReloadUnderLoad replaces the files while clients connect, with real
// sockets and time: no handshake fails, and all see one pair or another.
func TestTLSReloadUnderLoad(t *testing.T) {
	b := newTLSFixture(t, tls.NoClientCert)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go b.srv.Serve(Secure(ln, b.config())) // ends with the server
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				nc, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				nc.SetDeadline(time.Now().Add(time.Minute))
				if err := b.over(nc).Handshake(); err != nil {
					t.Error(err)
				}
				nc.Close()
			}
		})
	}
	for i := range 30 {
		p := b.ca.Server(tlsHost)
		if i%2 == 0 {
			put(t, b.files.Cert, p.Cert)
			put(t, b.files.Key, p.Key)
		} else {
			overwrite(t, b.files.Key, p.Key)
			overwrite(t, b.files.Cert, p.Cert)
		}
		want := serial(p)
		// The clients above may be looking at the files just now: then the
		// change is found by one of the next handshakes.
		for {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c := b.over(nc)
			must(t, c.Handshake())
			nc.Close()
			if c.ConnectionState().PeerCertificates[0].SerialNumber.String() == want {
				break
			}
		}
	}
	close(stop)
	wg.Wait()
	if st := b.srv.Stats(); st.TLSReloads < 30 {
		t.Errorf("%d reloads, want one for each change at least", st.TLSReloads)
	}
}

func TestTLSFilesErrors(t *testing.T) {
	ca := testcert.New(t, "ca")
	p, q := ca.Server("x"), ca.Server("x")
	paths := testcert.Write(t, t.TempDir(), "cert.pem", p.Cert, "key.pem", p.Key, "ca.pem", ca.PEM, "other.pem", q.Key,
		"text.pem", []byte("hello"), "both.pem", p.Both(), "enc.pem", encryptedKey(), "large.pem", make([]byte, maxPEM+1),
		"legacy.pem", []byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"))
	cert, key, caFile, other, text, both, enc, large, legacy := paths[0], paths[1], paths[2], paths[3], paths[4], paths[5], paths[6], paths[7], paths[8]
	need := tls.RequireAndVerifyClientCert
	for _, row := range []struct {
		name  string
		files TLSFiles
		want  string // "" for none
	}{
		{"good", TLSFiles{Cert: cert, Key: key, CA: caFile, ClientAuth: need}, ""},
		{"one file", TLSFiles{Cert: both}, ""},
		{"one file named twice", TLSFiles{Cert: both, Key: both}, ""},
		{"an unused CA is not read", TLSFiles{Cert: both, CA: text}, ""},
		{"nothing", TLSFiles{}, "Cert is empty"},
		{"no CA", TLSFiles{Cert: both, ClientAuth: need}, "CA is empty"},
		{"unverified", TLSFiles{Cert: both, CA: caFile, ClientAuth: tls.RequireAnyClientCert}, "proves nothing"},
		{"old version", TLSFiles{Cert: both, MinVersion: tls.VersionTLS10}, "MinVersion is TLS 1.0"},
		{"no such file", TLSFiles{Cert: cert, Key: "/no/such/file"}, "/no/such/file"},
		{"key of another", TLSFiles{Cert: cert, Key: other}, "does not match"},
		{"no key", TLSFiles{Cert: cert}, "the key in " + cert},
		{"text", TLSFiles{Cert: text, Key: key}, text},
		{"CA of text", TLSFiles{Cert: both, CA: text, ClientAuth: need}, text + " contains no certificate"},
		{"encrypted key", TLSFiles{Cert: cert, Key: enc}, "openssl pkey -in " + enc},
		{"encrypted key of old", TLSFiles{Cert: cert, Key: legacy}, "openssl pkey -in " + legacy},
		{"too large", TLSFiles{Cert: large, Key: key}, "larger than 4194304 bytes"},
	} {
		c, err := row.files.Config()
		switch {
		case row.want == "" && (err != nil || c == nil):
			t.Errorf("%s: %v", row.name, err)
		case row.want != "" && (!errors.Is(err, ErrTLSFiles) || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: %v, want ErrTLSFiles with %q", row.name, err, row.want)
		case row.want != "" && strings.Contains(err.Error(), "BEGIN"):
			t.Errorf("%s: the error has what is in the file", row.name)
		}
	}
}

// TestTLSFilesAreReadWhenTheyChange looks at what is taken for a change. The
// clock of a bubble would take every file for one that was just written.
func TestTLSFilesAreReadWhenTheyChange(t *testing.T) {
	b := newTLSFixture(t, tls.NoClientCert)
	age := func(name string, d time.Duration) {
		t.Helper()
		at := time.Now().Add(-d)
		must(t, os.Chtimes(name, at, at))
	}
	settle := func(r *tlsReloader) {
		t.Helper()
		age(b.files.Cert, time.Hour)
		age(b.files.Key, time.Hour)
		must(t, r.load())
		if r.changed() {
			t.Error("files that nobody touched are read again")
		}
	}
	r := &tlsReloader{files: b.files}
	for name, change := range map[string]func(){
		"touched":  func() { age(b.files.Cert, time.Minute) },
		"appended": func() { overwrite(t, b.files.Key, append(b.ca.Server("x").Key, '\n')); age(b.files.Key, time.Hour) },
		"removed":  func() { os.Rename(b.files.Key, b.files.Key+".away") },
		"another of the same size and time": func() {
			content, err := os.ReadFile(b.files.Cert)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(b.files.Cert)
			if err != nil {
				t.Fatal(err)
			}
			put(t, b.files.Cert, content)
			os.Chtimes(b.files.Cert, info.ModTime(), info.ModTime())
		},
	} {
		b.files = newTLSFixture(t, tls.NoClientCert).files
		r.files = b.files
		settle(r)
		if change(); !r.changed() {
			t.Errorf("%s: not seen", name)
		}
	}
	b.files = newTLSFixture(t, tls.NoClientCert).files
	r.files = b.files
	must(t, r.load())
	if !r.changed() {
		t.Error("files that were written just before they were read are taken for settled")
	}
}
