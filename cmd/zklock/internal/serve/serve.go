package serve

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
)

const serveHelp = `Serve runs the embedded server: a single server that speaks the ZooKeeper
protocol. An interrupt stops it; a second interrupt stops it at once. Use it on
one machine, or between machines if locks may be unavailable while the server is
down. For high availability, use a ZooKeeper ensemble.

Configuration: --config reads the zoo.cfg of a standalone ZooKeeper. The log
names the keys that have no effect, and keys of an ensemble are refused. Flags
override the file. Java system properties (-D in JVMFLAGS or SERVER_JVMFLAGS)
are not read: write them into the file, with or without the prefix
"zookeeper.".

Address: --listen takes HOST:PORT, or unix:/PATH for a socket that only this
user can use, and this group if the umask permits it.

Storage: --data or --memory is required, unless --config names a data directory.
The directory must belong to this user or root, and only its group may also have
write access. It cannot be the directory of a local server, which other commands
start when they need it.

Limits: --max-conns-per-address limits the connections from one IP address, as
maxClientCnxns does; all local programs together count as one address. On a unix
socket, each user except root and the server's own counts as one address.
--max-conns limits all connections, as maxCnxns does. 0 means no limit.

SASL: --jaas names a JAAS file with the users in its section Server. The key
java.security.auth.login.config does the same.

Log: the server logs to standard error. --log-level sets which messages it logs.
With --audit, it also logs each change and each denial, at each --log-level.

` + serveTLSHelp + `

Metrics: --metrics serves Prometheus metrics at /metrics, without
authentication. It takes PORT or HOST:PORT. A port, or an address without a
host, is on the loopback interface, and so is the key metricsProvider.httpPort
without metricsProvider.httpHost.

Socket activation: sockets from systemd replace the addresses. The
FileDescriptorName "tls" replaces --tls-listen, "metrics" replaces --metrics,
and all others replace --listen.

Local server: --status and --stop control this user's local server, which the
other commands start when needed. Each user has a separate local server, and
locks on different local servers do not exclude each other. With --status, -o
name prints the socket if the server is running.`

const serveExample = `  zklock serve --data /var/lib/zklock-server
  zklock serve --config /etc/zookeeper/conf/zoo.cfg --metrics 9141
  zklock serve --memory --listen unix:/run/zklock.sock --log-format json
  zklock serve --status -o json
` + serveTLSExample

// controlTime limits --status and --stop.
const controlTime = 15 * time.Second

// serveFlags are the flags of zklock serve.
type serveFlags struct {
	listen, data, config string
	jaas, metrics        string
	log                  logFlags
	memory, stop, status bool
	audit                bool
	local                string
	out                  cli.Output // of --status
	idle                 cli.Duration
	perAddress, conns    int
	tls                  serveTLSFlags
}

// Serve returns zklock serve.
func Serve(a *cli.App) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run the embedded server",
		Long:    serveHelp,
		Example: serveExample,
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.Begin(c, f.out.Check); err != nil {
				return err
			}
			if given := c.Flags().Changed; (given("output") || given("json")) && !f.status {
				return cli.UsageError("-o applies to --status: give both; for the log of the server see --log-format")
			}
			if err := f.checkAction(c.Flags()); err != nil {
				return err
			}
			if err := f.checkLimits(); err != nil {
				return err
			}
			return f.run(c)
		},
	}
	f.add(c)
	return c
}

// add adds the flags to the command.
func (f *serveFlags) add(c *cobra.Command) {
	f.idle.D = local.DefaultIdle
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:2181", "listen at this `address`")
	flags.StringVar(&f.data, "data", "", "keep the data in this `directory`")
	flags.BoolVar(&f.memory, "memory", false, "keep the data in memory only")
	flags.StringVar(&f.config, "config", "", "read settings from this `zoo.cfg`")
	flags.StringVar(&f.jaas, "jaas", "", "read the SASL users from this JAAS `file`")
	flags.StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics at this `address`")
	flags.BoolVar(&f.audit, "audit", false, "write an audit log (audit.enable in zoo.cfg)")
	flags.IntVar(&f.perAddress, "max-conns-per-address", defaultPerAddress, "at most `N` connections per address")
	flags.IntVar(&f.conns, "max-conns", 0, "at most `N` connections; 0 means no limit")
	f.log.flags(flags)
	f.tls.flags(flags)
	flags.BoolVar(&f.status, "status", false, "show this user's local server")
	flags.BoolVar(&f.stop, "stop", false, "stop this user's local server, keep its data")
	flags.StringVar(&f.local, "local", "", "run a user's local server in this directory")
	flags.Var(&f.idle, "idle", "with --local: exit after this time without a session")
	for _, hidden := range []string{"local", "idle"} {
		flags.Lookup(hidden).Hidden = true
	}
	f.out.Flag(c)
	c.MarkFlagsMutuallyExclusive("data", "memory", "status", "stop", "local")
}

// defaultPerAddress is the default of --max-conns-per-address, as of maxClientCnxns.
const defaultPerAddress = 60

// checkAction returns an error for a flag that has no effect with --status or --stop.
func (f *serveFlags) checkAction(flags *pflag.FlagSet) (err error) {
	action := "status"
	switch {
	case f.stop:
		action = "stop"
	case !f.status:
		return nil
	}
	flags.Visit(func(flag *pflag.Flag) {
		if !slices.Contains([]string{action, "output", "json"}, flag.Name) && err == nil {
			err = cli.UsageError("--%s does not apply to --%s: omit one of them", flag.Name, action)
		}
	})
	return err
}

// checkLimits returns an error if a limit is invalid.
func (f *serveFlags) checkLimits() error {
	if f.perAddress < 0 {
		return cli.UsageError("--max-conns-per-address is %d: give 1 or more, or 0 for no limit", f.perAddress)
	}
	if f.conns < 0 {
		return cli.UsageError("--max-conns is %d: give 1 or more, or 0 for no limit", f.conns)
	}
	return nil
}

// setLimits sets the limits whose flags were given.
func (f *serveFlags) setLimits(p *plan, given func(flag string) bool) {
	if given("max-conns-per-address") {
		p.opts.MaxClientConns = f.perAddress
		if f.perAddress == 0 { // which means the default there
			p.opts.MaxClientConns = -1
		}
	}
	if given("max-conns") {
		p.opts.MaxConns = f.conns
	}
}

// run runs the action that the flags select.
func (f *serveFlags) run(c *cobra.Command) error {
	switch {
	case f.local != "":
		return f.serveLocal()
	case f.status:
		return f.showLocal()
	case f.stop:
		return f.stopLocal()
	}
	p, err := f.plan(c.Flags().Changed("listen"))
	if err != nil {
		return err
	}
	f.setLimits(p, c.Flags().Changed)
	return p.serve()
}
