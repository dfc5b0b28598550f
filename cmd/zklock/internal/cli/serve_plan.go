package cli

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"

	"github.com/zklock/zklock/cmd/zklock/internal/jaas"
	"github.com/zklock/zklock/cmd/zklock/internal/systemd"
	"github.com/zklock/zklock/cmd/zklock/internal/zoocfg"
	"github.com/zklock/zklock/zkserver"
)

// plan is what a server is to be, of flags and file.
type plan struct {
	opts    zkserver.Options
	listen  string // the plain address, empty for none
	tls     serveTLS
	metrics string // host:port, empty for none
	config  string // the zoo.cfg, for the log
	sockets []systemd.Socket
	log     *slog.Logger
}

// plan joins the configuration file and the flags, which win.
func (f *serveFlags) plan(listenGiven bool) (*plan, error) {
	sockets, err := systemd.Sockets()
	if err != nil {
		return nil, err
	}
	return f.planWith(sockets, listenGiven)
}

// planWith does so with sockets that were handed over.
func (f *serveFlags) planWith(sockets []systemd.Socket, listenGiven bool) (*plan, error) {
	log, err := f.log.logger(os.Stderr)
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
	cfg := &zoocfg.Config{Section: jaas.DefaultSection}
	if f.config != "" {
		if cfg, err = readConfig(f.config); err != nil {
			return nil, err
		}
		if err := p.take(cfg, listenGiven); err != nil {
			return nil, err
		}
	}
	if p.handedTLS() != "" && !p.tls.wanted() {
		return nil, usage("a socket for TLS was handed over and no certificate named: give --tls-cert, or ssl.keyStore.location in the file")
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
	if f.metrics != "" {
		if p.metrics, err = metricsAddress(f.metrics); err != nil {
			return nil, err
		}
	}
	if p.listen == "" {
		return p, nil
	}
	return p, checkAddress("--listen", p.listen)
}

// place settles where the data are.
func (f *serveFlags) place(p *plan) error {
	switch {
	case f.memory:
		p.opts.DataDir = ""
	case f.data != "":
		p.opts.DataDir = f.data
	case p.opts.DataDir == "":
		return usage("say where to keep the data: --data DIRECTORY, --memory, or --config with a dataDir")
	}
	return nil
}

// readConfig reads a zoo.cfg; what is wrong with it is wrong usage.
func readConfig(name string) (*zoocfg.Config, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	defer file.Close()
	cfg, err := zoocfg.Parse(name, file)
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 && cfg.Confidential() {
		cfg.Notes = append(cfg.Notes, zoocfg.Note{Warning: true, Text: "the file holds passwords or digests of them and everybody on this machine may read it: chmod o= it"})
	}
	return cfg, nil
}

// take takes what the file says, and logs its notes.
func (p *plan) take(cfg *zoocfg.Config, listenGiven bool) error {
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
	if flags.wanted() || secure == "" && !cfg.Unify {
		return nil
	}
	files, warnings, err := cfg.TLS.Files()
	if err != nil {
		return usage("--config: %w", err)
	}
	for _, w := range warnings {
		p.note(zoocfg.Note{Warning: true, Text: w})
	}
	p.tls = serveTLS{Listen: secure, Unify: cfg.Unify && p.listen != "", Files: files}
	return nil
}

// handedTLS is the address of the socket for TLS that was handed over, empty if
// there is none.
func (p *plan) handedTLS() string {
	for _, s := range p.sockets {
		if s.Name == socketTLS && s.Addr().Network() == "unix" {
			return "unix:" + s.Addr().String()
		} else if s.Name == socketTLS {
			return s.Addr().String()
		}
	}
	return ""
}

// note logs a remark about the file.
func (p *plan) note(n zoocfg.Note) {
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

// users takes the users of SASL.
func (p *plan) users(cfg *zoocfg.Config) error {
	if cfg.JAAS != "" {
		users, warning, err := jaas.Read(cfg.JAAS, cfg.Section)
		if err != nil {
			return usage("%w", err)
		}
		if warning != "" {
			p.log.Warn(warning)
		}
		p.opts.SASLUsers = users
	}
	if secret := cfg.SuperPassword(); secret != "" {
		p.opts.SASLUsers = maps.Clone(p.opts.SASLUsers)
		if p.opts.SASLUsers == nil {
			return usage("SASLAuthenticationProvider.superPassword needs users: name a JAAS file by java.security.auth.login.config or --jaas")
		}
		p.opts.SASLUsers["super"] = secret
	}
	return nil
}

// metricsAddress completes an address for metrics: without a host it is of the
// loopback, for the page asks nobody for a password.
func metricsAddress(value string) (string, error) {
	if !strings.Contains(value, ":") {
		value = ":" + value
	}
	host, port, err := net.SplitHostPort(value)
	if err == nil && port == "" {
		err = errors.New("no port")
	}
	if err != nil {
		return "", usage("--metrics is %q: give PORT or HOST:PORT", value)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
