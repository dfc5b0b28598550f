package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

//go:embed script/kazoo_tls.py
var kazooTLS string

// patience limits each step of a test.
const patience = 5 * time.Minute

// within returns a context for one step of a test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// tlsConfig returns the configuration of a Go client.
func tlsConfig(ca *testcert.Authority, certs ...testcert.Pair) *tls.Config {
	c := &tls.Config{RootCAs: ca.Pool()}
	for _, p := range certs {
		c.Certificates = append(c.Certificates, p.TLS)
	}
	return c
}

// x509ACL gives all permissions to one subject.
func x509ACL(subject string) []zk.ACL {
	return []zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: subject}}
}

// dialTLS connects a Go client, which the cleanup closes.
func dialTLS(t *testing.T, addr string, c *tls.Config) *zk.Client {
	t.Helper()
	client, err := zk.Dial(within(t), addr, &zk.Options{TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// startZooKeeperTLS starts a ZooKeeper server with TLS. It returns its plain and its secure
// address.
func startZooKeeperTLS(t *testing.T, ca *testcert.Authority, clientAuth string) (plain, secure string) {
	t.Helper()
	harness.NeedZooKeeper(t)
	dir := t.TempDir()
	paths := testcert.Write(t, dir, "server.pem", ca.Server("127.0.0.1").Both(), "ca.pem", ca.PEM)
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	node := harness.StartServer(t, harness.ServerConfig{Extra: map[string]string{
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"secureClientPort":        fmt.Sprint(port),
		"secureClientPortAddress": "127.0.0.1",
		"ssl.keyStore.location":   paths[0],
		"ssl.trustStore.location": paths[1],
		"ssl.clientAuth":          clientAuth,
		"ssl.enabledProtocols":    "TLSv1.2,TLSv1.3",
		"authProvider.x509":       "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
	}})
	return node.Addr(), fmt.Sprintf("127.0.0.1:%d", port)
}

// startEmbeddedTLS starts an embedded server with TLS.
func startEmbeddedTLS(t *testing.T, ca *testcert.Authority, auth tls.ClientAuthType, wrap func(net.Listener, *tls.Config) net.Listener) (string, *zkserver.Server) {
	t.Helper()
	paths := testcert.Write(t, t.TempDir(), "server.pem", ca.Server("127.0.0.1").Both(), "ca.pem", ca.PEM)
	cfg, err := zkserver.TLSFiles{Cert: paths[0], CA: paths[1], ClientAuth: auth}.Config()
	if err != nil {
		t.Fatal(err)
	}
	ln := harness.Listen(t)
	return ln.Addr().String(), harness.ServeOn(t, zkserver.Options{}, wrap(ln, cfg))
}

// checkACLs checks that ACLs of the scheme x509 separate two clients.
func checkACLs(t *testing.T, addr string, ca *testcert.Authority) {
	t.Helper()
	ann := dialTLS(t, addr, tlsConfig(ca, ca.Client("ann")))
	bob := dialTLS(t, addr, tlsConfig(ca, ca.Client("bob")))
	if _, _, err := ann.Create(within(t), "/ann", []byte("x"), x509ACL("CN=ann"), zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ann.Get(within(t), "/ann"); err != nil {
		t.Errorf("ann cannot read her own node: %v", err)
	}
	if _, _, err := bob.Get(within(t), "/ann"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("bob reads the node of ann: %v", err)
	}
	if _, _, err := bob.Create(within(t), "/auth", nil, []zk.ACL{{Perms: zk.PermAll, Scheme: "auth"}}, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	acl, _, err := bob.GetACL(within(t), "/auth")
	if err != nil || len(acl) != 1 || acl[0].Scheme != "x509" || acl[0].ID != "CN=bob" {
		t.Errorf("the ACL auth became %v, %v", acl, err)
	}
	if _, _, err := ann.Get(within(t), "/auth"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("ann reads the node of bob: %v", err)
	}
}

func TestGoClientWithZooKeeper(t *testing.T) {
	ca := testcert.New(t, "ca")
	plain, secure := startZooKeeperTLS(t, ca, "need")
	checkACLs(t, secure, ca)
	t.Run("refusals", func(t *testing.T) {
		stranger := testcert.New(t, "stranger")
		for _, row := range []struct {
			name, addr string
			config     *tls.Config
			want       string
		}{
			{"no certificate", secure, tlsConfig(ca), "certificate"},
			{"certificate of another authority", secure, &tls.Config{RootCAs: ca.Pool(), GetClientCertificate: always(stranger.Client("ann"))}, "certificate"},
			{"server of another authority", secure, tlsConfig(stranger, ca.Client("ann")), "unknown authority"},
			{"TLS at the plain port", plain, tlsConfig(ca, ca.Client("ann")), "the port is a plain one"},
		} {
			began := time.Now()
			_, err := zk.Dial(within(t), row.addr, &zk.Options{TLS: row.config})
			if err == nil || !strings.Contains(err.Error(), row.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v after %v, want %q at once", row.name, err, time.Since(began), row.want)
			}
		}
		ctx, cancel := context.WithTimeout(within(t), 15*time.Second) // long enough to connect
		defer cancel()
		_, err := zk.Dial(ctx, secure, nil)
		t.Logf("plain at the secure port: %v", err)
		if err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("plain at the secure port: %v, want an error about TLS", err)
		}
	})
}

// always returns a callback that sends a certificate to any server.
func always(p testcert.Pair) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &p.TLS, nil }
}

func TestGoClientWithEmbeddedServer(t *testing.T) {
	ca := testcert.New(t, "ca")
	for name, wrap := range map[string]func(net.Listener, *tls.Config) net.Listener{"Secure": zkserver.Secure, "Unify": zkserver.Unify} {
		t.Run(name, func(t *testing.T) {
			addr, _ := startEmbeddedTLS(t, ca, tls.RequireAndVerifyClientCert, wrap)
			checkACLs(t, addr, ca)
			if _, err := zk.Dial(within(t), addr, &zk.Options{TLS: tlsConfig(ca)}); err == nil || !strings.Contains(err.Error(), "certificate required") {
				t.Errorf("no certificate: %v", err)
			}
			plain, err := zk.Dial(within(t), addr, nil)
			if name == "Secure" {
				if !errors.Is(err, zk.ErrTLSRequired) {
					t.Errorf("plain at the secure port: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			if _, _, err := plain.Get(within(t), "/ann"); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("a plain client reads the node of ann: %v", err)
			}
		})
	}
	t.Run("TLS at a plain port", func(t *testing.T) {
		addr, _ := startEmbeddedTLS(t, ca, tls.NoClientCert, func(ln net.Listener, _ *tls.Config) net.Listener { return ln })
		_, err := zk.Dial(within(t), addr, &zk.Options{TLS: tlsConfig(ca)})
		if err == nil || !strings.Contains(err.Error(), "the port is a plain one") || errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// otherClients returns the commands of Java's client and of kazoo.
func otherClients(t *testing.T, addr, other string, who testcert.Pair, ca *testcert.Authority) map[string]func(*testing.T) *exec.Cmd {
	dir := t.TempDir()
	paths := testcert.Write(t, dir, "both.pem", who.Both(), "cert.pem", who.Cert, "key.pem", who.Key, "ca.pem", ca.PEM)
	return map[string]func(*testing.T) *exec.Cmd{
		"java": func(t *testing.T) *exec.Cmd {
			return javaClients.Command(t, "TlsPeer", "client", addr, paths[0], paths[3], other)
		},
		"kazoo": func(t *testing.T) *exec.Cmd {
			return harness.Python(t, "kazoo", "-c", kazooTLS, addr, paths[1], paths[2], paths[3], other)
		},
	}
}

func TestOtherClientsWithEmbeddedServer(t *testing.T) {
	for name, wrap := range map[string]func(net.Listener, *tls.Config) net.Listener{"Secure": zkserver.Secure, "Unify": zkserver.Unify} {
		ca := testcert.New(t, "ca")
		addr, srv := startEmbeddedTLS(t, ca, tls.RequireAndVerifyClientCert, wrap)
		ann, mine := dialTLS(t, addr, tlsConfig(ca, ca.Client("ann"))), dialTLS(t, addr, tlsConfig(ca, ca.Client("go")))
		if _, _, err := ann.Create(within(t), "/ann", nil, x509ACL("CN=ann"), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		for peer, command := range otherClients(t, addr, "/ann", ca.Client("peer"), ca) {
			t.Run(name+" "+peer, func(t *testing.T) {
				cmd := command(t)
				var log bytes.Buffer
				cmd.Stderr = &log
				out, err := cmd.Output()
				if want := "acl x509 CN=peer\nrefused NOAUTH\ndone\n"; err != nil || string(out) != want {
					t.Fatalf("%q, %v, want %q; log:\n%s", out, err, want, log.String())
				}
				for path, want := range map[string]error{"/for-go": nil, "/kazoo-for-go": nil, "/java": zk.ErrNoAuth, "/kazoo": zk.ErrNoAuth} {
					if strings.Contains(path, "kazoo") == (peer == "kazoo") {
						if _, _, err := mine.Get(within(t), path); !errors.Is(err, want) {
							t.Errorf("%s: %v, want %v", path, err, want)
						}
					}
				}
			})
		}
		if st := srv.Stats(); st.TLSHandshakeFailures != 0 {
			t.Errorf("%s: %d handshakes failed", name, st.TLSHandshakeFailures)
		}
	}
}

// TestConvertedJavaKeyStoresLoad converts key stores of keytool by the commands that error messages
// recommend. The server must load the results.
func TestConvertedJavaKeyStoresLoad(t *testing.T) {
	for _, tool := range []string{"keytool", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			harness.SkipOrFail(t, err.Error())
		}
	}
	dir := t.TempDir()
	run := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	const pw = " -storepass secret1 -keypass secret1 "
	run("keytool -genkeypair -alias a -keyalg EC -dname CN=x -storetype JKS -keystore s.jks" + pw)
	run("keytool -importkeystore -srckeystore s.jks -destkeystore s.p12 -deststoretype PKCS12 -srcstorepass secret1 -deststorepass secret1")
	run("openssl pkcs12 -in s.p12 -nodes -out s.pem -passin pass:secret1")
	run("keytool -list -rfc -keystore s.jks -storepass secret1 >ca.pem")
	if _, err := (zkserver.TLSFiles{Cert: filepath.Join(dir, "s.pem"), CA: filepath.Join(dir, "ca.pem"), ClientAuth: tls.RequireAndVerifyClientCert}).Config(); err != nil {
		t.Error(err)
	}
}
