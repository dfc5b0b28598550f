package zkserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

// servedSerial returns the serial number of the certificate that a new connection gets, and ends
// the test if the handshake fails.
func (b *tlsFixture) servedSerial(certs ...testcert.Pair) string {
	b.t.Helper()
	c := b.tlsClient(b.dial("2281"), certs...)
	if err := c.Handshake(); err != nil {
		b.t.Fatalf("no handshake: %v; the log:\n%s", err, b.log)
	}
	c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// serial returns the serial number of a certificate.
func serial(p testcert.Pair) string { return p.TLS.Leaf.SerialNumber.String() }

// wantReloads checks the counters of reloads and of failed ones.
func (b *tlsFixture) wantReloads(good, bad int64) {
	b.t.Helper()
	if st := b.srv.Stats(); st.TLSReloads != good || st.TLSReloadFailures != bad {
		b.t.Errorf("%d reloads and %d failures, want %d and %d; the log:\n%s", st.TLSReloads, st.TLSReloadFailures, good, bad, b.log)
	}
}

// replaceFile replaces a file by renaming another to its name.
func replaceFile(t testing.TB, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".new", content, 0o600))
	must(t, os.Rename(path+".new", path))
}

// overwrite overwrites a file in place.
func overwrite(t testing.TB, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o600))
}

func TestTLSReloadServesNewCertificate(t *testing.T) {
	for name, replace := range map[string]func(testing.TB, string, []byte){"renamed": replaceFile, "in place": overwrite} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			b.serve("2281", Secure)
			first := b.servedSerial()
			old := b.must(b.session("2281"))
			b.wantReloads(0, 0)
			next := b.ca.Server(tlsHost)
			// Between the two replacements, certificate and key do not match.
			replace(t, b.files.Cert, next.Cert)
			for range 3 {
				if got := b.servedSerial(); got != first {
					t.Errorf("%s: a certificate without its key is served: %s", name, got)
				}
			}
			b.wantReloads(0, 1)
			replace(t, b.files.Key, next.Key)
			if got := b.servedSerial(); got != serial(next) {
				t.Errorf("%s: the new certificate is not served", name)
			}
			b.servedSerial()
			b.wantReloads(1, 1)
			if !old.exists("/") {
				t.Errorf("%s: the reload ended an earlier connection", name)
			}
		})
	}
}

// TestTLSReloadThroughLinks exchanges a symbolic link to the directory, as Kubernetes does for
// secret volumes.
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
		if got := b.servedSerial(); got != serial(one) {
			t.Error("not the first certificate")
		}
		exchange("..2", two)
		if got := b.servedSerial(); got != serial(two) {
			t.Error("not the second certificate")
		}
		b.wantReloads(1, 0)
	})
}

// TestTLSReloadOfRelativePathsAfterChdir: the program may change its working directory.
func TestTLSReloadOfRelativePathsAfterChdir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		next := b.ca.Server(tlsHost)
		cert, key := b.files.Cert, b.files.Key
		t.Chdir(filepath.Dir(cert))
		b.files.Cert, b.files.Key = filepath.Base(cert), filepath.Base(key)
		b.serve("2281", Secure)
		t.Chdir(t.TempDir())
		replaceFile(t, cert, next.Cert)
		replaceFile(t, key, next.Key)
		if got := b.servedSerial(); got != serial(next) {
			t.Error("the new certificate is not served")
		}
	})
}

// TestTLSPathsFromRoot: on Windows, a path from the root of the current drive is not absolute.
func TestTLSPathsFromRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		drive := filepath.VolumeName(b.files.Cert)
		t.Chdir(filepath.Dir(b.files.Cert))
		b.files.Cert, b.files.Key = b.files.Cert[len(drive):], b.files.Key[len(drive):]
		b.serve("2281", Secure)
		b.servedSerial()
	})
}

// TestTLSReloadIgnoresUnchangedContent replaces a file by one with the same content.
func TestTLSReloadIgnoresUnchangedContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		b.serve("2281", Secure)
		first := b.servedSerial()
		content, err := os.ReadFile(b.files.Cert)
		if err != nil {
			t.Fatal(err)
		}
		replaceFile(t, b.files.Cert, content)
		if b.servedSerial() != first {
			t.Error("another certificate")
		}
		b.wantReloads(0, 0)
	})
}

// damageCA replaces the CA by another one, followed by the result of harm for it.
func (b *tlsFixture) damageCA(harm func(pem []byte) []byte) {
	b.t.Helper()
	replaceFile(b.t, b.files.CA, slices.Concat(testcert.New(b.t, "other").PEM, harm(b.ca.PEM)))
}

func TestTLSReloadKeepsFilesAfterError(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(*testing.T, *tlsFixture)
		want string
	}{
		{"no file", func(t *testing.T, b *tlsFixture) { os.Remove(b.files.Key) }, "no such file"},
		{"emptied", func(t *testing.T, b *tlsFixture) { replaceFile(t, b.files.Cert, nil) }, "failed to find any PEM data"},
		{"cut off", func(t *testing.T, b *tlsFixture) { replaceFile(t, b.files.Key, b.ca.Server("x").Key[:50]) }, "key.pem"},
		{"no CA", func(t *testing.T, b *tlsFixture) { replaceFile(t, b.files.CA, []byte("oops")) }, "ca.pem: no certificate"},
		{"CA without its end", func(t *testing.T, b *tlsFixture) { b.damageCA(func(pem []byte) []byte { return pem[:len(pem)-20] }) }, "ca.pem: 1 of its 2 PEM blocks"},
		{"CA without its beginning", func(t *testing.T, b *tlsFixture) { b.damageCA(func(pem []byte) []byte { return pem[100:] }) }, "ca.pem: 1 of its 2 PEM blocks"},
		{"damaged CA", func(t *testing.T, b *tlsFixture) {
			b.damageCA(func(pem []byte) []byte { return bytes.Replace(pem, []byte("MII"), []byte("M~I"), 1) })
		}, "ca.pem: 1 of its 2 PEM blocks"},
		{"invalid CA", func(t *testing.T, b *tlsFixture) {
			b.damageCA(func(pem []byte) []byte { return bytes.Replace(pem, []byte("MII"), []byte("MIA"), 1) })
		}, "ca.pem: certificate 2 is invalid: x509: "},
		{"cut off chain", func(t *testing.T, b *tlsFixture) {
			pem := b.ca.Server(tlsHost).Cert
			replaceFile(t, b.files.Cert, slices.Concat(pem, pem[:len(pem)-20]))
		}, "cert.pem: 1 of its 2 PEM blocks"},
		{"encrypted", func(t *testing.T, b *tlsFixture) { replaceFile(t, b.files.Key, encryptedKey()) }, "openssl pkey"},
		{"a directory", func(t *testing.T, b *tlsFixture) { os.Remove(b.files.Key); os.Mkdir(b.files.Key, 0o700) }, "key.pem"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
			b.serve("2281", Secure)
			ann := b.ca.Client("ann")
			first := b.servedSerial(ann)
			test.harm(t, b)
			for range 5 {
				if b.servedSerial(ann) != first {
					t.Errorf("%s: another certificate", test.name)
				}
			}
			b.wantReloads(0, 1)
			log := b.log.String()
			if strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, test.want) {
				t.Errorf("%s: want one warning with %q, got:\n%s", test.name, test.want, log)
			}
			if strings.Contains(log, "BEGIN") {
				t.Errorf("%s: the log has the content of a file", test.name)
			}
			next := b.ca.Server(tlsHost)
			os.Remove(b.files.Key)
			replaceFile(t, b.files.Key, next.Key)
			replaceFile(t, b.files.Cert, next.Cert)
			replaceFile(t, b.files.CA, b.ca.PEM)
			if b.servedSerial(ann) != serial(next) {
				t.Errorf("%s: the server does not load good files after bad ones", test.name)
			}
			b.wantReloads(1, 1)
		})
	}
}

// encryptedKey returns the PEM form of an encrypted key.
func encryptedKey() []byte {
	return []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH0MF8GCSqGSIb3DQEFDTBSMDEGCSqG\n-----END ENCRYPTED PRIVATE KEY-----\n")
}

// TestTLSReloadAppliesRemovedCA: after a CA was removed, the server refuses its clients, even if
// they try to resume a TLS session.
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
		replaceFile(t, b.files.CA, other.PEM)
		if login(ann) == nil {
			t.Error("ann is served after her CA was removed")
		}
		if err := login(bob); err != nil {
			t.Errorf("bob is not served: %v", err)
		}
		b.wantReloads(1, 0)
	})
}

// TestCutClientsAfterCAChange: with CutClients, the server closes a connection when its client's
// certificate is no longer trusted or expires, and no other connection.
func TestCutClientsAfterCAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
		b.serve("2281", Secure) // without CutClients
		stays := b.must(b.session("2281", b.ca.Client("ann")))
		b.files.CutClients = true
		b.serve("2282", Secure)
		other := testcert.New(t, "other")
		replaceFile(t, b.files.CA, append(bytes.Clone(b.ca.PEM), other.PEM...))
		ann, bob := b.must(b.session("2282", b.ca.Client("ann"))), b.must(b.session("2282", other.Client("bob")))
		replaceFile(t, b.files.CA, other.PEM)
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

// TestExpiryFollowsTheWallClock: certificates expire by a clock that may be set, so the server
// reads it each minute.
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

// TestTLSReloadFailsNoHandshake replaces the files while clients connect, with real sockets and
// time. No handshake may fail.
func TestTLSReloadFailsNoHandshake(t *testing.T) {
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
				if err := b.tlsClient(nc).Handshake(); err != nil {
					t.Error(err)
				}
				nc.Close()
			}
		})
	}
	for i := range 30 {
		p := b.ca.Server(tlsHost)
		if i%2 == 0 {
			replaceFile(t, b.files.Cert, p.Cert)
			replaceFile(t, b.files.Key, p.Key)
		} else {
			overwrite(t, b.files.Key, p.Key)
			overwrite(t, b.files.Cert, p.Cert)
		}
		want := serial(p)
		// The other clients may just be reading the files. Then a later handshake finds the change.
		for {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c := b.tlsClient(nc)
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
		{"key of another certificate", TLSFiles{Cert: cert, Key: other}, "does not match"},
		{"no key", TLSFiles{Cert: cert}, "the key in " + cert},
		{"text", TLSFiles{Cert: text, Key: key}, text},
		{"CA of text", TLSFiles{Cert: both, CA: text, ClientAuth: need}, text + ": no certificate"},
		{"encrypted key", TLSFiles{Cert: cert, Key: enc}, "openssl pkey -in " + enc},
		{"encrypted key in the old format", TLSFiles{Cert: cert, Key: legacy}, "openssl pkey -in " + legacy},
		{"too large", TLSFiles{Cert: large, Key: key}, "larger than 4194304 bytes"},
	} {
		c, err := row.files.Config()
		switch {
		case row.want == "" && (err != nil || c == nil):
			t.Errorf("%s: %v", row.name, err)
		case row.want != "" && (!errors.Is(err, ErrTLSFiles) || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: %v, want ErrTLSFiles with %q", row.name, err, row.want)
		case row.want != "" && strings.Contains(err.Error(), "BEGIN"):
			t.Errorf("%s: the error has the content of the file", row.name)
		}
	}
}

// TestTLSFilesAreReadWhenTheyChange checks what counts as a change. In a bubble, the server
// would count every file as new.
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
			t.Error("unchanged files are read again")
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
			replaceFile(t, b.files.Cert, content)
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
		t.Error("new files are not read again")
	}
}
