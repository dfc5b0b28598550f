package serve

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zkserver"
)

// plan has the configuration of a server, from flags and the configuration file.
type plan struct {
	opts    zkserver.Options
	listen  string // the plain address, "" for none
	tls     serveTLS
	metrics string // host:port, "" for none
	config  string // the zoo.cfg, for the log
	sockets []Socket
	log     *slog.Logger
}

// plan combines the configuration file and the flags. Flags take precedence.
func (f *serveFlags) plan(listenGiven bool) (*plan, error) {
	sockets, err := Sockets()
	if err != nil {
		return nil, err
	}
	return f.planWith(sockets, listenGiven)
}

// planWith makes the plan with the sockets that systemd passed.
func (f *serveFlags) planWith(sockets []Socket, listenGiven bool) (*plan, error) {
	log, err := f.log.logger(cli.Stderr)
	if err != nil {
		return nil, err
	}
	p := &plan{listen: f.listen, config: f.config, log: log, sockets: sockets}
	if at := p.handedTLS(); at != "" && !f.tls.unify && f.tls.cert != "" {
		f.tls.listen = at
	}
	if p.tls, err = f.tls.settings(); err != nil {
		return nil, err
	}
	if p.tls.Listen != "" && !listenGiven {
		p.listen = ""
	}
	cfg := &config.ServerConfig{Section: config.DefaultJAASSection}
	if f.config != "" {
		if cfg, err = readConfig(f.config); err != nil {
			return nil, err
		}
		if err := p.take(cfg, listenGiven); err != nil {
			return nil, err
		}
	}
	if f.tls.cut && !p.tls.wanted() {
		return nil, cli.UsageError("--tls-cut needs TLS: give --tls-listen or --tls-unify, or secureClientPort in the file")
	}
	if p.handedTLS() != "" && !p.tls.wanted() {
		return nil, cli.UsageError("systemd passed a socket for TLS, but no certificate is set: give --tls-cert, or ssl.keyStore.location in the file")
	}
	p.opts.Logger = log
	p.opts.Audit = p.opts.Audit || f.audit
	if err := f.place(p); err != nil {
		return nil, err
	}
	if f.jaas != "" {
		cfg.JAAS = f.jaas
	}
	if err := p.users(cfg); err != nil {
		return nil, err
	}
	if err := p.checkSchemes(cfg); err != nil {
		return nil, err
	}
	if f.metrics != "" {
		if p.metrics, err = metricsAddress(f.metrics); err != nil {
			return nil, err
		}
	}
	if err := p.checkTLSAddresses(); err != nil {
		return nil, err
	}
	if p.listen == "" && !listenGiven {
		if !p.tls.wanted() && !slices.ContainsFunc(p.sockets, isPlain) {
			return nil, cli.UsageError("--config: clientPort is 0, and no port serves TLS, so no client could connect: " +
				"set clientPort or secureClientPort, or remove the line to listen at 127.0.0.1:2181")
		}
		return p, nil
	}
	return p, checkAddress("--listen", p.listen)
}

// checkTLSAddresses returns an error if the addresses for TLS and for plain connections contradict
// each other.
func (p *plan) checkTLSAddresses() error {
	anyPort := strings.HasSuffix(p.listen, ":0") // each listener gets its own
	switch {
	case p.tls.Unify && p.listen == "" && !slices.ContainsFunc(p.sockets, isPlain):
		return cli.UsageError("--tls-unify needs a plain address, and with --tls-listen there is none: " +
			"give --listen, or omit --tls-unify")
	case p.listen != "" && !anyPort && p.listen == p.tls.Listen && len(p.sockets) == 0:
		return cli.UsageError("the addresses for plain connections and for TLS are both %s: give different ones, "+
			"or only the plain one with --tls-unify or client.portUnification", p.listen)
	}
	return nil
}

// isPlain reports whether a socket from systemd is for plain connections.
func isPlain(s Socket) bool { return s.Name != socketTLS && s.Name != socketMetrics }

// place sets where the data is stored.
func (f *serveFlags) place(p *plan) error {
	switch {
	case f.memory:
		p.opts.DataDir = ""
	case f.data != "":
		p.opts.DataDir = f.data
	case p.opts.DataDir == "":
		return cli.UsageError("no place for the data: give --data DIRECTORY, --memory, or --config with a dataDir")
	}
	if home := local.Home(p.opts.DataDir, local.Mine()); home != "" {
		return cli.UsageError("%s belongs to the local server in %s, which commands without --servers start when they need it: give --data another directory; zklock serve --status shows the local server",
			legible.Path(p.opts.DataDir), legible.Path(home))
	}
	return nil
}

// readConfig reads a zoo.cfg. Errors in it are usage errors.
func readConfig(name string) (*config.ServerConfig, error) {
	text, info, err := inputfile.Read(name, config.MaxServerConfig)
	if err != nil {
		return nil, cli.UsageError("--config: %w", err)
	}
	cfg, err := config.ParseServerConfig(name, bytes.NewReader(text))
	if err != nil {
		return nil, cli.UsageError("--config: %w", err)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 && cfg.Confidential {
		cfg.Notes = append(cfg.Notes, config.Note{Warning: true, Text: "the file contains passwords or their digests, and all users of this machine can read it: chmod o= it"})
	}
	return cfg, nil
}

// take applies the settings of the file and logs its notes.
func (p *plan) take(cfg *config.ServerConfig, listenGiven bool) error {
	p.opts, p.metrics = cfg.Server, cfg.Metrics
	flags := p.tls
	if !listenGiven {
		p.listen = cfg.Listen()
		if flags.Listen != "" && cfg.ClientPort == 0 {
			p.listen = ""
		}
	}
	for _, n := range cfg.Notes {
		p.note(n)
	}
	secure := cfg.Secure()
	if at := p.handedTLS(); at != "" {
		secure = at
	}
	inFile := cfg.Unify || cfg.TLS.Given()
	switch {
	case flags.wanted() && (inFile || cfg.SecurePort != 0):
		p.note(config.Note{Warning: true, Text: "the flags for TLS replace all TLS settings of the file: secureClientPort, client.portUnification, and ssl.* have no effect"})
		return nil
	case flags.wanted():
		return nil
	case secure == "" && (!cfg.Unify || p.listen == ""):
		if inFile {
			p.note(config.Note{Warning: true, Text: "no port serves TLS, so the file's settings for TLS have no effect: set secureClientPort, or client.portUnification with clientPort"})
		}
		return nil
	case cfg.Unify && p.listen == "":
		p.note(config.Note{Warning: true, Text: "client.portUnification has no effect without clientPort"})
	}
	files, warnings, err := cfg.TLS.Files()
	if err != nil {
		return cli.UsageError("--config: %w", err)
	}
	for _, w := range warnings {
		p.note(config.Note{Warning: true, Text: w})
	}
	files.CutClients = flags.Files.CutClients
	p.tls = serveTLS{Listen: secure, Unify: cfg.Unify && p.listen != "", Files: files}
	return nil
}

// handedTLS returns the address of the socket for TLS that systemd passed, or "".
func (p *plan) handedTLS() string {
	for _, s := range p.sockets {
		if s.Name == socketTLS {
			return addressOf(s)
		}
	}
	return ""
}

// note logs a remark about the file.
func (p *plan) note(n config.Note) {
	args := []any{"file", p.config}
	if n.Line > 0 {
		args = append(args, "line", n.Line)
	}
	if n.Warning {
		p.log.Warn(n.Text, args...)
		return
	}
	p.log.Info(n.Text, args...)
}

// users sets the SASL users.
func (p *plan) users(cfg *config.ServerConfig) error {
	if cfg.JAAS != "" {
		users, warning, err := config.ReadJAAS(cfg.JAAS, cfg.Section)
		if err != nil {
			return cli.UsageError("%w", err)
		}
		if warning != "" {
			p.log.Warn(warning)
		}
		p.opts.SASLUsers = users
	}
	if secret := cfg.SuperPassword; secret != "" {
		p.opts.SASLUsers = maps.Clone(p.opts.SASLUsers)
		if p.opts.SASLUsers == nil {
			return cli.UsageError("SASLAuthenticationProvider.superPassword needs users: name a JAAS file by java.security.auth.login.config or --jaas")
		}
		p.opts.SASLUsers["super"] = secret
	}
	return nil
}

// checkSchemes logs the settings for schemes with which no client can authenticate. It returns an
// error if clients must authenticate with such a scheme.
func (p *plan) checkSchemes(cfg *config.ServerConfig) error {
	unusable := map[string]string{}
	if len(p.opts.SASLUsers) == 0 {
		unusable["sasl"] = "there are no SASL users; name a JAAS file by java.security.auth.login.config or --jaas"
	}
	if !p.tls.wanted() || p.tls.Files.ClientAuth == tls.NoClientCert {
		unusable["x509"] = "no port asks clients for certificates; set secureClientPort and ssl.clientAuth=need, or --tls-listen and --tls-ca"
	}
	for _, scheme := range slices.Sorted(maps.Keys(unusable)) {
		for _, n := range cfg.SchemeNotes[scheme] {
			n.Text += ": " + unusable[scheme]
			p.note(n)
		}
	}
	for _, user := range p.opts.SuperUsers {
		if len(p.opts.SASLUsers) > 0 && p.opts.SASLUsers[user] == "" {
			p.note(config.Note{Warning: true, Text: fmt.Sprintf("superUser has no effect for %+q: there is no such SASL user", user)})
		}
	}
	key, schemes := "enforce.auth.schemes", p.opts.EnforceAuthSchemes
	if p.opts.RequireSASL {
		key, schemes = "sessionRequireClientSASLAuth", []string{"sasl"}
	}
	var why []string
	for _, scheme := range schemes {
		if unusable[scheme] == "" {
			return nil
		}
		why = append(why, unusable[scheme])
	}
	if len(why) == 0 {
		return nil
	}
	return cli.UsageError("--config: %s requires %s, so no client could use the server: %s", key, strings.Join(schemes, " or "), strings.Join(why, "; and "))
}

// metricsAddress completes an address for metrics.
func metricsAddress(value string) (string, error) {
	if !strings.Contains(value, ":") {
		value = ":" + value
	}
	return loopbackAddress("--metrics", value, "PORT or HOST:PORT")
}

// loopbackAddress completes the address of a page. The default host is the loopback, because
// the page has no password. forms are the forms of a valid address.
func loopbackAddress(flag, value, forms string) (string, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil || port == "" {
		return "", cli.UsageError("%s is %q: give %s", flag, value, forms)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}
