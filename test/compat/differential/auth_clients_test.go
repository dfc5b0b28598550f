package differential

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// testClients runs this module's client, Java's, and kazoo on both servers, with the same results.
func testClients(t *testing.T, p servers) {
	for i, addr := range p.sides() {
		server := []string{"Java's server", "our server"}[i]
		t.Run(server, func(t *testing.T) {
			testOurClient(t, addr)
			testJavaClient(t, addr)
			testKazoo(t, addr)
		})
	}
}

// TestSASLRefusedWithoutSASLUsers checks that each client reports the refusal of its SASL
// credentials, instead of reconnecting repeatedly.
func TestSASLRefusedWithoutSASLUsers(t *testing.T) {
	p := startServers(t, authConfig{noSASL: true})
	section := jaas(t, "Client", `  username="bob" password="builder"`)
	for i, addr := range p.sides() {
		t.Run([]string{"Java's server", "our server"}[i], func(t *testing.T) {
			if c, err := dial(t, addr, "bob", "builder"); !errors.Is(err, zk.ErrAuthFailed) {
				t.Errorf("our client: %v", err)
				if err == nil {
					c.Close()
				}
			}
			if got := runClient(t, addr, section); got != "AuthFailed" {
				t.Errorf("Java's client: %q", got)
			}
			runKazoo(t, addr, "builder", "refused")
		})
	}
}

// dial connects this module's client.
func dial(t *testing.T, addr, user, password string) (*zk.Client, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o := &zk.Options{SessionTimeout: 20 * time.Second}
	if user != "" {
		o.SASL = &zk.SASL{User: user, Password: password}
	}
	return zk.Dial(ctx, addr, o)
}

// testOurClient authenticates, uses the identity, and tries wrong passwords.
func testOurClient(t *testing.T, addr string) {
	c, err := dial(t, addr, "bob", "builder")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	umlaut, err := dial(t, addr, "jürgen", "grüße")
	if err != nil {
		t.Fatal(err)
	}
	defer umlaut.Close()
	if err := umlaut.AddAuth(t.Context(), "digest", []byte("x:y")); err != nil {
		t.Fatal(err)
	}
	auth := []zk.ACL{{Perms: zk.PermAll, Scheme: "auth"}}
	if _, _, err := c.Create(t.Context(), "/ours", nil, auth, zk.ModeEphemeral); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.GetACL(t.Context(), "/ours"); err != nil || len(got) != 1 || got[0] != (zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "bob"}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := umlaut.Get(t.Context(), "/ours"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("another user: %v", err)
	}
	for user, password := range map[string]string{"bob": "wrong", "nobody": "what nobody has"} {
		if c, err := dial(t, addr, user, password); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%s got in: %v", user, err)
			if err == nil {
				c.Close()
			}
		}
	}
}

var javaClient = harness.JavaProgram{Sources: os.DirFS("testdata"), Jars: []string{"zookeeper", "slf4j-simple"}}

// runClient runs Java's client as a user, and returns its output.
func runClient(t *testing.T, addr, section string) string {
	t.Helper()
	cmd := javaClient.Command(t, "SaslClient", addr)
	cmd.Args = append([]string{cmd.Args[0], "-Djava.security.auth.login.config=" + section, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}, cmd.Args[1:]...)
	var errs strings.Builder
	cmd.Stderr = &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	// Each wait of the program has a timeout.
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("java: %v\n%s%s", err, out, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// testJavaClient authenticates by Java's client.
func testJavaClient(t *testing.T, addr string) {
	right := runClient(t, addr, jaas(t, "Client", `  username="bob" password="builder"`))
	if want := "SaslAuthenticated [31,s{'sasl,'bob}\n] read true"; strings.Join(strings.Fields(right), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("right password: %q, want %q", right, want)
	}
	if got := runClient(t, addr, jaas(t, "Client", `  username="bob" password="wrong"`)); got != "AuthFailed" {
		t.Errorf("wrong password: %q", got)
	}
}

// testKazoo authenticates by kazoo, which has another implementation of the mechanism.
func testKazoo(t *testing.T, addr string) {
	t.Helper()
	for password, want := range map[string]string{"builder": "[(31, 'sasl', 'bob')] x", "wrong": "refused"} {
		runKazoo(t, addr, password, want)
	}
}

// runKazoo runs kazoo as bob, and compares its output.
func runKazoo(t *testing.T, addr, password, want string) {
	t.Helper()
	// Each wait of the program has a timeout.
	cmd := harness.Python(t, "kazoo, puresasl", filepath.Join("testdata", "sasl_client.py"), addr, "bob", password)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("kazoo: %q, %v, want %q\n%s", got, err, want, errs.String())
	}
}
