package compat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkkerberos"
)

// The realm of the tests, and a second realm that trusts it.
const (
	testRealm  = "ZKLOCK.TEST"
	otherRealm = "OTHER.TEST"
)

// kdc is a KDC of MIT Kerberos with its own directory and port.
type kdc struct {
	t    *testing.T
	dir  string
	port int
	proc *harness.Process
}

// startKDC starts a KDC for both realms, which the cleanup ends.
func startKDC(t *testing.T) *kdc {
	t.Helper()
	for _, name := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist"} {
		if _, err := sbin(name); err != nil {
			harness.SkipOrFail(t, name+" is missing: run scripts/install-deps, which installs Debian's krb5-kdc, krb5-admin-server, and krb5-user")
		}
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	k := &kdc{t: t, dir: t.TempDir(), port: port}
	k.write("krb5.conf", k.conf(testRealm, "1d"))
	k.write("kdc.conf", fmt.Sprintf("[kdcdefaults]\n kdc_listen = 127.0.0.1:%d\n kdc_tcp_listen = 127.0.0.1:%d\n[realms]\n", port, port)+
		k.realm(testRealm)+k.realm(otherRealm)+
		fmt.Sprintf("[logging]\n kdc = FILE:%s\n", k.path("kdc.log")))
	for _, r := range []string{testRealm, otherRealm} {
		k.run("kdb5_util", "-r", r, "create", "-s", "-P", "master-key")
	}
	k.admin(testRealm, "addprinc -randkey zookeeper/localhost", "addprinc -randkey app", "addprinc -randkey gone", "addprinc -pw trust krbtgt/"+otherRealm,
		"ktadd -k "+k.path("zk.keytab")+" zookeeper/localhost", "ktadd -k "+k.path("app.keytab")+" app", "ktadd -k "+k.path("gone.keytab")+" gone",
		"delprinc -force gone")
	k.admin(otherRealm, "addprinc -randkey zookeeper/localhost", "addprinc -pw trust krbtgt/"+otherRealm+"@"+testRealm,
		"ktadd -k "+k.path("other.keytab")+" zookeeper/localhost")
	k.start()
	return k
}

// sbin returns the path of a program in PATH or /usr/sbin.
func sbin(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

func (k *kdc) path(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(name, text string) string {
	k.t.Helper()
	if err := os.WriteFile(k.path(name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return k.path(name)
}

// conf returns a krb5.conf with a default realm and a lifetime of tickets.
func (k *kdc) conf(realm, lifetime string) string {
	text := fmt.Sprintf("[libdefaults]\n default_realm = %s\n dns_lookup_kdc = false\n ticket_lifetime = %s\n udp_preference_limit = 1\n[realms]\n", realm, lifetime)
	for _, r := range []string{testRealm, otherRealm} {
		text += fmt.Sprintf(" %s = {\n  kdc = 127.0.0.1:%d\n }\n", r, k.port)
	}
	return text
}

// realm returns the section of a realm in kdc.conf.
func (k *kdc) realm(name string) string {
	return fmt.Sprintf(" %s = {\n  database_name = %s\n  key_stash_file = %s\n  acl_file = %s\n }\n",
		name, k.path(name+".db"), k.path(name+".stash"), k.path("acl"))
}

func (k *kdc) environ() []string {
	return append(os.Environ(), "KRB5_CONFIG="+k.path("krb5.conf"), "KRB5_KDC_PROFILE="+k.path("kdc.conf"), "KRB5CCNAME=FILE:"+k.path("none"), "ZKLOCK_CONFIG_FILE="+k.path("none"))
}

func (k *kdc) command(name string, args ...string) *exec.Cmd {
	k.t.Helper()
	path, err := sbin(name)
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.CommandContext(k.t.Context(), path, args...)
	cmd.Env = k.environ()
	return cmd
}

func (k *kdc) run(name string, args ...string) {
	k.t.Helper()
	if out, err := k.command(name, args...).CombinedOutput(); err != nil {
		k.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// admin runs queries on the database of a realm.
func (k *kdc) admin(realm string, queries ...string) {
	k.t.Helper()
	for _, q := range queries {
		k.run("kadmin.local", "-r", realm, "-q", q)
	}
}

// start starts the KDC and waits until it accepts connections.
func (k *kdc) start() {
	k.t.Helper()
	proc, err := harness.Start(k.command("krb5kdc", "-n", "-r", testRealm, "-r", otherRealm))
	if err != nil {
		k.t.Fatal(err)
	}
	k.proc = proc
	k.t.Cleanup(proc.Kill)
	ctx := within(k.t)
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", k.port))
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-proc.Done():
			log, _ := os.ReadFile(k.path("kdc.log"))
			k.t.Fatalf("krb5kdc ended: %s", log)
		case <-ctx.Done():
			k.t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kinit writes a credential cache with tickets of a lifetime, and returns its path.
func (k *kdc) kinit(name, lifetime string) string {
	k.t.Helper()
	k.run("kinit", "-c", "FILE:"+k.path(name), "-l", lifetime, "-k", "-t", k.path("app.keytab"), "app")
	return k.path(name)
}

// zooKeeper starts a server that authenticates clients by the keys of a keytab.
func (k *kdc) zooKeeper(keytab, realm string) *harness.Server {
	k.t.Helper()
	jaas := k.write(keytab+".jaas", fmt.Sprintf(`Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false keyTab=%q principal="zookeeper/localhost@%s";
};
`, k.path(keytab), realm))
	return harness.StartServer(k.t, harness.ServerConfig{
		Extra:     map[string]string{"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
		JavaFlags: []string{"-Djava.security.auth.login.config=" + jaas, "-Djava.security.krb5.conf=" + k.write(keytab+".conf", k.conf(realm, "1d"))},
	})
}

// mechanism returns a mechanism with the krb5.conf of the KDC.
func (k *kdc) mechanism(o zkkerberos.Options) *zkkerberos.Mechanism {
	k.t.Helper()
	if o.Config == "" {
		o.Config = k.path("krb5.conf")
	}
	m, err := zkkerberos.New(&o)
	if err != nil {
		k.t.Fatal(err)
	}
	return m
}

// within returns a context for one step of a test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
	t.Cleanup(cancel)
	return ctx
}

// appOnly gives all permissions to the principal of the tests.
var appOnly = []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: "app@" + testRealm}}

// TestKerberosWithZooKeeper checks that a client that authenticates by Kerberos, and no other, can
// acquire a lock whose ACL names its principal.
func TestKerberosWithZooKeeper(t *testing.T) {
	harness.NeedZooKeeper(t)
	k := startKDC(t)
	srv := k.zooKeeper("zk.keytab", testRealm)
	t.Run("keytab", func(t *testing.T) { testKerberosKeytab(t, k, srv) })
	t.Run("reconnect", func(t *testing.T) { testKerberosReconnect(t, k, srv) })
	t.Run("refused", func(t *testing.T) { testKerberosRefused(t, k, srv) })
	t.Run("command", func(t *testing.T) { testKerberosCommand(t, k, srv) })
	t.Run("other realm", func(t *testing.T) { testKerberosOtherRealm(t, k) })
}

func testKerberosKeytab(t *testing.T, k *kdc, srv *harness.Server) {
	c, err := zklock.Dial(within(t), srv.Addr(), &zklock.Options{ACL: appOnly,
		SASL: k.mechanism(zkkerberos.Options{Keytab: k.path("app.keytab"), Principal: "app"})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hold, err := c.Mutex("/kerberos/keytab").Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release(within(t))
	anonymous, err := zk.Dial(within(t), srv.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer anonymous.Close()
	if _, _, err := anonymous.Children(within(t), "/kerberos/keytab"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a client without Kerberos reads the lock: %v", err)
	}
	// kinit gets the ticket, which names the principal.
	ccache, err := zk.Dial(within(t), srv.Addr(), &zk.Options{SASL: k.mechanism(zkkerberos.Options{CCache: k.kinit("app.ccache", "1h")})})
	if err != nil {
		t.Fatal(err)
	}
	defer ccache.Close()
	list, _, err := ccache.GetACL(within(t), "/kerberos/keytab")
	if err != nil || len(list) != 1 || list[0] != appOnly[0] {
		t.Errorf("%v, %v", list, err)
	}
}

// testKerberosReconnect: a client uses its ticket for later connections without a KDC, and
// replaces a ticket that expires.
func testKerberosReconnect(t *testing.T, k *kdc, srv *harness.Server) {
	brief := k.write("brief.conf", k.conf(testRealm, "30s"))
	long := k.mechanism(zkkerberos.Options{Keytab: k.path("app.keytab")})
	short := k.mechanism(zkkerberos.Options{Keytab: k.path("app.keytab"), Config: brief})
	dial := func(m *zkkerberos.Mechanism) error {
		c, err := zk.Dial(within(t), srv.Addr(), &zk.Options{SASL: m})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	for range 2 {
		for _, m := range []*zkkerberos.Mechanism{long, short} {
			if err := dial(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.proc.Kill()
	if err := dial(long); err != nil {
		t.Errorf("the ticket is valid for a day: %v", err)
	}
	if _, err := short.Start(within(t), "localhost", nil); err == nil || !strings.Contains(err.Error(), "no KDC of the realm answered; check krb5.conf and the network") {
		t.Errorf("the ticket is about to expire, and there is no KDC: %v", err)
	}
	k.start()
	if err := dial(short); err != nil {
		t.Error(err)
	}
}

// testKerberosRefused: each refusal is a permanent error with a recommendation.
func testKerberosRefused(t *testing.T, k *kdc, srv *harness.Server) {
	expired := k.kinit("expired.ccache", "1s")
	for k.command("klist", "-s", "-c", expired).Run() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	for name, tt := range map[string]struct {
		opts zkkerberos.Options
		kind error
		want string
	}{
		"unknown to the KDC":   {zkkerberos.Options{Keytab: k.path("gone.keytab")}, zk.ErrAuthFailed, "log in as gone@" + testRealm + ": the KDC does not know this principal"},
		"not in the keytab":    {zkkerberos.Options{Keytab: k.path("app.keytab"), Principal: "ann"}, zk.ErrInvalidOptions, "it has no key of ann@" + testRealm},
		"expired":              {zkkerberos.Options{CCache: expired}, zk.ErrInvalidOptions, "run kinit, or use a keytab"},
		"no cache":             {zkkerberos.Options{CCache: k.path("none")}, zk.ErrInvalidOptions, "no such file or directory; run kinit"},
		"of another principal": {zkkerberos.Options{CCache: k.kinit("app.ccache", "1h"), Principal: "ann"}, zk.ErrInvalidOptions, "run kinit ann@" + testRealm},
		"another service":      {zkkerberos.Options{Keytab: k.path("app.keytab"), Server: "kafka/_HOST"}, zk.ErrInvalidOptions, "get a ticket for kafka/localhost@" + testRealm + ": the KDC does not know this principal"},
		"not a keytab":         {zkkerberos.Options{Keytab: k.path("krb5.conf")}, zk.ErrInvalidOptions, "this is not a keytab"},
	} {
		c, err := zk.Dial(within(t), srv.Addr(), &zk.Options{SASL: k.mechanism(tt.opts)})
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, tt.kind) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The KDC gets a new key.
	k.admin(testRealm, "addprinc -randkey rotated", "ktadd -k "+k.path("rotated.keytab")+" rotated", "cpw -randkey rotated")
	_, err := zk.Dial(within(t), srv.Addr(), &zk.Options{SASL: k.mechanism(zkkerberos.Options{Keytab: k.path("rotated.keytab")})})
	if !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(fmt.Sprint(err), "export its keytab again") {
		t.Errorf("old key: %v", err)
	}
}

// testKerberosCommand: the command has flags and environment variables for the options.
func testKerberosCommand(t *testing.T, k *kdc, srv *harness.Server) {
	command := harness.Command(t)
	zklock := func(env []string, args ...string) (string, error) {
		cmd := exec.CommandContext(within(t), command, args...)
		cmd.Env = append(append(k.environ(), "ZKLOCK_SERVERS="+srv.Addr(), "ZKLOCK_ACL=sasl:app@"+testRealm+":cdrwa"), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	ccache := k.kinit("app.ccache", "1h")
	for name, run := range map[string]struct {
		env  []string
		args []string
	}{
		"keytab":           {nil, []string{"--kerberos-keytab", k.path("app.keytab"), "--kerberos-principal", "app"}},
		"credential cache": {nil, []string{"--kerberos-ccache", ccache}},
		"default cache":    {[]string{"KRB5CCNAME=FILE:" + ccache}, []string{"--kerberos-ccache", "default"}},
		"variables":        {[]string{"ZKLOCK_KERBEROS_KEYTAB=" + k.path("app.keytab"), "ZKLOCK_KERBEROS_SERVER=zookeeper/localhost@" + testRealm}, nil},
	} {
		out, err := zklock(run.env, append(append([]string{"run"}, run.args...), "kerberos-command", "--", "echo", "locked")...)
		if err != nil || out != "locked\n" {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
	out, err := zklock(nil, "run", "--kerberos-ccache", k.path("none"), "kerberos-command", "--", "echo", "locked")
	if err == nil || !strings.Contains(out, "run kinit, or use a keytab") {
		t.Errorf("without tickets: %v, %s", err, out)
	}
	c, err := zk.Dial(within(t), srv.Addr(), &zk.Options{SASL: k.mechanism(zkkerberos.Options{Keytab: k.path("app.keytab")})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(within(t), "/zklock/closed", nil, appOnly, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	out, err = zklock(nil, "run", "closed", "--", "true")
	if err == nil || !strings.Contains(out, "--kerberos-keytab") {
		t.Errorf("without Kerberos: %v, %s", err, out)
	}
}

// testKerberosOtherRealm: a client authenticates to a server in a realm that trusts its realm.
func testKerberosOtherRealm(t *testing.T, k *kdc) {
	srv := k.zooKeeper("other.keytab", otherRealm)
	c, err := zk.Dial(within(t), srv.Addr(), &zk.Options{
		SASL: k.mechanism(zkkerberos.Options{Keytab: k.path("app.keytab"), Server: "zookeeper/_HOST@" + otherRealm})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(within(t), "/other", nil, appOnly, zk.ModePersistent); err != nil {
		t.Error(err)
	}
}
