package serve

import (
	"bufio"
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/zkserver"
)

// planned returns the plan of a command line and a zoo.cfg, "" for none.
func planned(t *testing.T, args, cfg string) (*plan, error) {
	t.Helper()
	return plannedAt(t, "error", args, cfg)
}

// plannedAt is planned with a level of the log.
func plannedAt(t *testing.T, level, args, cfg string) (*plan, error) {
	t.Helper()
	dir := t.TempDir()
	if cfg != "" {
		name := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(name, []byte(cfg), 0o600); err != nil {
			t.Fatal(err)
		}
		args += " --config " + name
	}
	var f serveFlags
	c := &cobra.Command{}
	f.add(c)
	if err := c.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	f.log.level = level
	return f.plan(c.Flags().Changed("listen"))
}

// TestLogOfServerGoesThroughStderr checks that the log is written to cli.Stderr, which never
// blocks for long. The goroutine that accepts connections logs.
func TestLogOfServerGoesThroughStderr(t *testing.T) {
	old, text := cli.Stderr, new(bytes.Buffer)
	defer func() { cli.Stderr = old }()
	cli.Stderr = text
	p, err := planned(t, "--memory", "")
	if err != nil {
		t.Fatal(err)
	}
	p.log.Error("said")
	uiLogger().Error("shown")
	if got := text.String(); !strings.Contains(got, "said") || !strings.Contains(got, "shown") {
		t.Errorf("cli.Stderr got %q, want the lines of the server and of the page", got)
	}
}

// TestAuditLogIsWrittenAtEachLevel checks that --log-level does not turn off the audit log.
func TestAuditLogIsWrittenAtEachLevel(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, level := range []string{"debug", "info", "warn", "error"} {
			var b bytes.Buffer
			log, err := (&logFlags{format: format, level: level}).logger(&b)
			if err != nil {
				t.Fatal(err)
			}
			srv, err := zkserver.New(&zkserver.Options{Audit: true, Logger: log.With("server", 1)})
			if err != nil {
				t.Fatal(err)
			}
			log.Info("a message")
			if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			if !strings.Contains(text, "serverStart") || !strings.Contains(text, "serverStop") {
				t.Errorf("%s, %s: no audit log in %q", format, level, text)
			}
			if got, want := strings.Contains(text, "a message"), level == "debug" || level == "info"; got != want {
				t.Errorf("%s, %s: logged another message: %v, want %v", format, level, got, want)
			}
		}
	}
}

// TestUnreadOutputDoesNotDelayServer checks that the server continues after it has printed its
// address, although standard output blocks.
func TestUnreadOutputDoesNotDelayServer(t *testing.T) {
	r, restore := clitest.BlockStderr(t)
	stdout := os.Stdout
	os.Stdout = os.Stderr
	printed := make(chan struct{})
	go func() { // ends at the latest with restore
		defer close(printed)
		printLine("serving at %s", "127.0.0.1:2181")
	}()
	select {
	case <-printed:
	case <-time.After(time.Minute):
		t.Error("the server waits for a reader of its output")
	}
	os.Stdout = stdout
	if text, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.HasSuffix(text, "serving at 127.0.0.1:2181\n") {
		t.Errorf("the output ends with %.100q, %v", text[max(0, len(text)-100):], err)
	}
	restore()
}

// TestPlan checks that flags override the file, and that the defaults are safe.
func TestPlan(t *testing.T) {
	const tlsKeys = "\nssl.keyStore.location=/k.pem\nssl.clientAuth=none"
	const prom = "\nmetricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
	for _, tt := range []struct {
		args, cfg                   string
		data, listen, tlsAt, metric string
	}{
		{"--memory", "", "", "127.0.0.1:2181", "", ""},
		{"--data /d", "", "/d", "127.0.0.1:2181", "", ""},
		{"", "dataDir=/f", "/f", "127.0.0.1:2181", "", ""},
		{"--data /d", "dataDir=/f\nclientPort=1", "/d", ":1", "", ""},
		{"--memory", "dataDir=/f", "", "127.0.0.1:2181", "", ""},
		{"--listen h:9", "dataDir=/f\nclientPort=1", "/f", "h:9", "", ""},
		{"", "dataDir=/f\nsecureClientPort=2" + tlsKeys, "/f", "", ":2", ""},
		{"", "dataDir=/f\nclientPort=1\nsecureClientPort=2" + tlsKeys, "/f", ":1", ":2", ""},
		{"--tls-listen h:3 --tls-cert c", "dataDir=/f\nclientPort=1\nsecureClientPort=2" + tlsKeys, "/f", ":1", "h:3", ""},
		{"--tls-listen h:3 --tls-cert c --memory", "", "", "", "h:3", ""},
		{"--tls-listen h:3 --tls-cert c", "dataDir=/f", "/f", "", "h:3", ""},
		{"--tls-listen h:3 --tls-cert c", "dataDir=/f\nclientPort=0", "/f", "", "h:3", ""},
		{"--listen h:9", "dataDir=/f\nclientPort=0", "/f", "h:9", "", ""},
		{"--memory --metrics 9", "", "", "127.0.0.1:2181", "", "127.0.0.1:9"},
		{"--memory --metrics :9", "", "", "127.0.0.1:2181", "", "127.0.0.1:9"},
		{"--memory --metrics 0.0.0.0:9", "", "", "127.0.0.1:2181", "", "0.0.0.0:9"},
		{"", "dataDir=/f" + prom, "/f", "127.0.0.1:2181", "", "127.0.0.1:7000"},
		{"--metrics [::1]:8", "dataDir=/f" + prom, "/f", "127.0.0.1:2181", "", "[::1]:8"},
	} {
		p, err := planned(t, tt.args, tt.cfg)
		if err != nil {
			t.Errorf("%s with %q: %v", tt.args, tt.cfg, err)
			continue
		}
		if p.opts.DataDir != tt.data || p.listen != tt.listen || p.tls.Listen != tt.tlsAt || p.metrics != tt.metric {
			t.Errorf("%s with %q: data %q, listen %q, TLS %q, metrics %q; want %+v", tt.args, tt.cfg, p.opts.DataDir, p.listen, p.tls.Listen, p.metrics, tt)
		}
	}
}

func TestPlanTakesTheOptions(t *testing.T) {
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(jaas, []byte(`Server { x.DigestLoginModule required user_a="b"; };`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planned(t, "--data /d", "tickTime=700\nSASLAuthenticationProvider.superPassword=c\njava.security.auth.login.config="+jaas)
	if err != nil {
		t.Fatal(err)
	}
	if p.opts.TickTime != 700*time.Millisecond || p.opts.SASLUsers["a"] != "b" || p.opts.SASLUsers["super"] != "c" || p.opts.Logger == nil {
		t.Errorf("%+v", p.opts)
	}
	if _, err := planned(t, "--data /d", "SASLAuthenticationProvider.superPassword=c"); cli.ExitCode(err) != cli.ExitUsage || strings.Contains(err.Error(), "=c") {
		t.Errorf("a password without a user: %v", err)
	}
}

// TestReadableSecretsAreWarnedAbout checks a file with passwords that every user may read.
func TestReadableSecretsAreWarnedAbout(t *testing.T) {
	for _, tt := range []struct {
		text string
		mode os.FileMode
		want bool
	}{
		{"ssl.keyStore.password=hunter2", 0o644, true}, {"ssl.keyStore.password=hunter2", 0o640, false}, {"tickTime=2000", 0o644, false},
	} {
		name := filepath.Join(t.TempDir(), "zoo.cfg")
		if err := os.WriteFile(name, []byte(tt.text), tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, tt.mode); err != nil {
			t.Fatal(err)
		}
		cfg, err := readConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(cfg.Notes) == 1 && strings.Contains(cfg.Notes[0].Text, "all users of this machine"); got != tt.want {
			t.Errorf("%q with mode %v: notes %+v", tt.text, tt.mode, cfg.Notes)
		}
	}
}

// TestTLSSocketNeedsCertificate checks a TLS socket of systemd.
func TestTLSSocketNeedsCertificate(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sockets := []Socket{{Name: socketTLS, Listener: ln}}
	f := serveFlags{listen: "127.0.0.1:2181", memory: true, log: logFlags{format: "text", level: "error"}}
	if _, err := f.planWith(sockets, false); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("%v, want an error that names --tls-cert", err)
	}
	f.tls.cert = "c.pem"
	p, err := f.planWith(sockets, false)
	if err != nil || p.tls.Listen != ln.Addr().String() || p.listen != "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestSocketReplacesMissingPort checks that a socket of systemd serves clients if the file has no
// port.
func TestSocketReplacesMissingPort(t *testing.T) {
	name := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(name, []byte("clientPort=0"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := serveFlags{config: name, memory: true, log: logFlags{format: "text", level: "error"}}
	for socket, refused := range map[string]bool{"clients": false, socketMetrics: true} {
		_, err := f.planWith([]Socket{{Name: socket, Listener: addressed{&net.TCPAddr{Port: 1}}}}, false)
		if (err != nil) != refused {
			t.Errorf("with the socket %s: %v", socket, err)
		}
	}
}

// TestSummaryHasNoSecret checks the log of the start.
func TestSummaryHasNoSecret(t *testing.T) {
	p, err := planned(t, "--memory", "dataDir=/f\nDigestAuthenticationProvider.superDigest=super:hunter2=")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	flags := logFlags{format: "json", level: "info"}
	if p.log, err = flags.logger(&b); err != nil {
		t.Fatal(err)
	}
	p.opts.SASLUsers = map[string]string{"ann": "hunter2"}
	p.summary()
	if text := b.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, `"super_digest":true`) || !strings.Contains(text, `"sasl_users":1`) {
		t.Errorf("logged %s", text)
	}
}

// TestSummaryHasNoDefaults checks that zero values, which mean defaults, are not logged.
func TestSummaryHasNoDefaults(t *testing.T) {
	p, err := planned(t, "--memory", "dataDir=/f\nmaxClientCnxns=7")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p.log = slog.New(slog.NewTextHandler(&b, nil))
	p.summary()
	if text := b.String(); !strings.Contains(text, " max_conns_per_address=7") || !strings.Contains(text, " tick=3s") || strings.Contains(text, "=0s") || strings.Contains(text, "max_conns=") {
		t.Errorf("logged %s", text)
	}
}

// TestSummaryNamesOnlyOwnAddresses checks that an address that a socket of systemd replaces is
// not logged.
func TestSummaryNamesOnlyOwnAddresses(t *testing.T) {
	var b bytes.Buffer
	p := &plan{listen: "127.0.0.1:2181", metrics: "127.0.0.1:7000", log: slog.New(slog.NewTextHandler(&b, nil))}
	p.sockets = []Socket{{Name: "unknown", Listener: addressed{&net.TCPAddr{Port: 1}}}}
	p.summary()
	if text := b.String(); strings.Contains(text, "2181") || !strings.Contains(text, "metrics=127.0.0.1:7000 systemd_sockets=1") {
		t.Errorf("logged %s", text)
	}
}

// TestNoListenerIsLeftOpenAfterFailure checks that if one port is in use, no other address is
// printed or listened on.
func TestNoListenerIsLeftOpenAfterFailure(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := filepath.Join(t.TempDir(), "s")
	p := &plan{listen: "unix:" + path, metrics: taken.Addr().String()}
	if _, _, err := p.listeners(nil); err == nil || !strings.Contains(err.Error(), "give another address") {
		t.Errorf("%v, want what to do about a port in use", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other listener is still open: %v", err)
	}
}

// TestFailureOfServerIsReturned checks that the error of a server that failed is returned, in
// whatever order its goroutines end.
func TestFailureOfServerIsReturned(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		ended []error
		want  error
	}{
		{nil, nil},
		{[]error{zkserver.ErrServerClosed, http.ErrServerClosed}, nil},
		{[]error{http.ErrServerClosed, broken, zkserver.ErrServerClosed}, broken},
	} {
		r := &running{ended: make(chan error, len(tt.ended))}
		for _, err := range tt.ended {
			r.ended <- err
		}
		if got := r.failure(); got != tt.want {
			t.Errorf("%v: %v", tt.ended, got)
		}
	}
}

// TestTLSCutAppliesToConfigurationFile checks that --tls-cut applies to the certificates of the
// file, and is refused without TLS.
func TestTLSCutAppliesToConfigurationFile(t *testing.T) {
	p, err := planned(t, "--memory --tls-cut", "secureClientPort=2\nssl.keyStore.location=/k.pem\nssl.clientAuth=none")
	if err != nil || !p.tls.Files.CutClients {
		t.Errorf("with TLS in the file: %+v, %v", p, err)
	}
	for _, cfg := range []string{"", "clientPort=1"} {
		if _, err := planned(t, "--memory --tls-cut", cfg); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--tls-cut needs TLS") {
			t.Errorf("with %q: %v", cfg, err)
		}
	}
}

// TestSchemesThatNoClientCanUseAreRefused checks that the server does not start with settings that
// admit no client.
func TestSchemesThatNoClientCanUseAreRefused(t *testing.T) {
	const keys = "\nsecureClientPort=2\nssl.keyStore.location=/k.pem\nssl.clientAuth="
	const only = "clientPort=1\nenforce.auth.enabled=true\nenforce.auth.schemes=x509"
	for cfg, want := range map[string]string{
		only:                 "enforce.auth.schemes requires x509, so no client could use the server: no port asks",
		only + ",digest":     "",
		only + ",sasl":       "no SASL users",
		only + keys + "none": "no port asks clients for certificates",
		only + keys + "want\nssl.trustStore.location=/c.pem":                                        "",
		only + "\nsecureClientPort=2\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/c.pem": "",
	} {
		_, err := planned(t, "--memory", cfg)
		if want == "" && err != nil || want != "" && (cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", cfg, err, want)
		}
	}
}

// TestContradictingSettingsAreRefused checks that the error names flags of the command and keys of
// the file, not options of the Go API.
func TestContradictingSettingsAreRefused(t *testing.T) {
	const sasl, schemes = "sessionRequireClientSASLAuth=true", "enforce.auth.enabled=true\nenforce.auth.schemes=sasl"
	for _, tt := range []struct{ args, cfg, want string }{
		{"--memory --tls-listen :1 --tls-unify --tls-cert c", "", "--tls-unify"},
		{"--memory --listen :1 --tls-listen :1 --tls-cert c", "", "both :1"},
		{"--memory", "clientPort=1\nsecureClientPort=1\nssl.keyStore.location=/k.pem\nssl.clientAuth=none", "both :1"},
		{"--memory", "clientPort=0", "clientPort is 0, and no port serves TLS, so no client could connect"},
		{"--memory", "clientPort=0\nsecureClientPort=0", "clientPort is 0"},
		{"--memory", sasl, "sessionRequireClientSASLAuth"},
		{"--memory", schemes, "enforce.auth.schemes"},
		{"--memory", schemes + ",x509", "enforce.auth.schemes requires sasl or x509"},
		{"--memory", schemes + ",x509\nsecureClientPort=1\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/c.pem", ""},
		{"--memory --tls-listen :1 --tls-cert c --tls-ca ca", schemes + ",x509", ""},
		{"--memory", schemes + ",digest", ""},
		{"--memory --listen :1 --tls-listen :2 --tls-unify --tls-cert c", "", ""},
		{"--memory --listen :0 --tls-listen :0 --tls-cert c", "", ""}, // two free ports
	} {
		_, err := planned(t, tt.args, tt.cfg)
		if tt.want == "" && err != nil || tt.want != "" && (cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with %q: %v, want %q", tt.args, tt.cfg, err, tt.want)
		}
	}
}

// TestSettingsWithoutEffect checks that the log names settings for TLS and authentication that
// have no effect.
func TestSettingsWithoutEffect(t *testing.T) {
	const keys = "\nssl.keyStore.location=/k.pem\nssl.clientAuth=none\n"
	flags := serveTLS{Listen: ":3"}
	for _, tt := range []struct {
		cfg  string
		tls  serveTLS
		want string
	}{
		{"clientPort=1" + keys, serveTLS{}, "no port serves TLS"},
		{"clientPort=1\nssl.clientAuth=need", serveTLS{}, "no port serves TLS"},
		{"clientPort=1\nssl.keyStore.location=/k.jks\nssl.trustStore.location=/t.p12", serveTLS{}, "no port serves TLS"},
		{"secureClientPort=2\nssl.keyStore.location=/k.jks", flags, "the flags for TLS replace"},
		{"secureClientPort=2" + keys, serveTLS{}, ""},
		{"clientPort=1\nclient.portUnification=true" + keys, serveTLS{}, ""},
		{"secureClientPort=2\nclient.portUnification=true" + keys, serveTLS{}, "client.portUnification has no effect without clientPort"},
		{"secureClientPort=2" + keys, flags, "the flags for TLS replace"},
		{"clientPort=1", flags, ""},
		{"clientPort=1\nenforce.auth.schemes=x509", serveTLS{}, "enforce.auth.schemes has no effect"},
		{"clientPort=1\nensembleAuthName=a", serveTLS{}, "ensembleAuthName has no effect"},
	} {
		cfg, err := config.ParseServerConfig("zoo.cfg", strings.NewReader(tt.cfg))
		if err != nil {
			t.Fatalf("%q: %v", tt.cfg, err)
		}
		var log bytes.Buffer
		p := &plan{log: slog.New(slog.NewTextHandler(&log, nil)), tls: tt.tls}
		if err := p.take(cfg, false); err != nil {
			t.Errorf("%q: %v", tt.cfg, err)
		}
		if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "effect") {
			t.Errorf("%q: the log says %q, want %q", tt.cfg, got, tt.want)
		}
	}
}

// TestAuthenticationWithoutEffect checks that the log names settings for the schemes sasl and x509
// if no client can authenticate with them, and only then.
func TestAuthenticationWithoutEffect(t *testing.T) {
	const class = "org.apache.zookeeper.server.auth."
	const certs = "secureClientPort=2\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/c.pem\n"
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(jaas, []byte(`Mine { x.DigestLoginModule required user_bob="b"; }; Server { x.DigestLoginModule required user_bob="b"; };`), 0o600); err != nil {
		t.Fatal(err)
	}
	users := "java.security.auth.login.config=" + jaas + "\n"
	old := cli.Stderr
	defer func() { cli.Stderr = old }()
	logged := func(cfg string) string {
		var log bytes.Buffer
		cli.Stderr = &log
		if _, err := plannedAt(t, "info", "--memory", "clientPort=1\n"+cfg); err != nil {
			t.Errorf("%q: %v", cfg, err)
		}
		return log.String()
	}
	for _, tt := range []struct{ cfg, want, with string }{
		{"superUser=bob", "superUser has no effect: there are no SASL users", users},
		{"zookeeper.superUser.1=bob", "zookeeper.superUser.1 has no effect: there are no SASL users", users},
		{"sasl.serverconfig=Mine", "sasl.serverconfig has no effect: there are no SASL users", users},
		{"sasl.serverconfig=Server", "sasl.serverconfig has no effect", users},
		{"authProvider.1=" + class + "SASLAuthenticationProvider", "authProvider.1 lets no client authenticate: there are no SASL users", users},
		{"X509AuthenticationProvider.superUser=CN=a", "X509AuthenticationProvider.superUser has no effect: no port asks clients for certificates", certs},
		{"authProvider.x509=" + class + "X509AuthenticationProvider", "authProvider.x509 lets no client authenticate: no port asks", certs},
	} {
		if got := logged(tt.cfg); !strings.Contains(got, tt.want) || !strings.Contains(got, "line=2") {
			t.Errorf("%q: the log says %q, want %q", tt.cfg, got, tt.want)
		}
		if got := logged(tt.cfg + "\n" + tt.with); got != "" {
			t.Errorf("%q: the log says %q, want nothing", tt.cfg+"\n"+tt.with, got)
		}
	}
	for cfg, want := range map[string]string{
		certs + "ssl.clientAuth=none\nX509AuthenticationProvider.superUser=CN=a": "no port asks clients for certificates",
		certs + "ssl.clientAuth=none":                                            "ssl.trustStore.location has no effect with ssl.clientAuth=none",
		users + "superUser=eve":                                                  `superUser has no effect for \"eve\": there is no such SASL user`,
	} {
		if got := logged(cfg); !strings.Contains(got, want) {
			t.Errorf("%q: the log says %q, want %q", cfg, got, want)
		}
	}
}
