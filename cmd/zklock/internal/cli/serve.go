package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

const serveHelp = `Serve runs a server of one node that speaks ZooKeeper's protocol, until it is
interrupted; a second interrupt ends it at once. It is for one machine, and for
sharing locks between machines that can do without when that one fails; past
that, use an ensemble of ZooKeeper.

--config takes the zoo.cfg of a ZooKeeper of one server as it is: keys that mean
nothing here are named in the log, those of an ensemble are refused. Flags come
before the file. What Java is told by -D (JVMFLAGS, SERVER_JVMFLAGS) is not
read: write it into the file, with or without "zookeeper." before it.

SASL: --jaas names a JAAS file whose section Server has the users, as does the
key java.security.auth.login.config.

` + serveTLSHelp + `

--metrics serves figures for Prometheus at /metrics, without a password. A port
alone, or an address without a host, is of the loopback; so is the key
metricsProvider.httpPort without metricsProvider.httpHost.

Sockets that systemd hands over take the place of addresses: one whose
FileDescriptorName is "tls" that of TLS, "metrics" that of the metrics, and all
others that of --listen.

--status and --stop are about this user's local server, which the other
commands start by themselves. Different users have different local servers, and
their locks do not exclude each other.`

const serveExample = `  zklock serve --data /var/lib/zklock
  zklock serve --config /etc/zookeeper/conf/zoo.cfg --data /var/lib/zklock --metrics 9141
  zklock serve --status -o json
  zklock serve --memory --listen unix:/run/zklock.sock --log-format json
` + serveTLSExample

// controlTime bounds --status and --stop, and the end of a server.
const controlTime = 15 * time.Second

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, data, config string
	jaas, metrics        string
	log                  logFlags
	memory, stop, status bool
	audit                bool
	local                string
	out                  output // of --status
	idle                 span.Value
	tls                  serveTLSFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run a server, or see after the local one",
		Long:    serveHelp,
		Example: serveExample,
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := f.out.check(c.Flags()); err != nil {
				return err
			}
			if given := c.Flags().Changed; (given("output") || given("json")) && !f.status {
				return usage("-o is about --status: give both; for what the server logs see --log-format")
			}
			return f.run(c)
		},
	}
	f.idle.D = local.DefaultIdle
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:2181", "listen at this `address`, HOST:PORT, or unix:/PATH for this user and group alone")
	flags.StringVar(&f.data, "data", "", "keep everything in this `directory`, which no other user may write to")
	flags.BoolVar(&f.memory, "memory", false, "keep everything in memory: nothing survives the server")
	flags.StringVar(&f.config, "config", "", "take settings from this `zoo.cfg`; flags come first")
	flags.StringVar(&f.jaas, "jaas", "", "take the users of SASL from this JAAS `file`")
	flags.StringVar(&f.metrics, "metrics", "", "serve metrics for Prometheus at this `address`, PORT or HOST:PORT")
	flags.BoolVar(&f.audit, "audit", false, "log who does what to which znode, as audit.enable in zoo.cfg")
	f.log.flags(flags)
	f.tls.flags(flags)
	flags.BoolVar(&f.status, "status", false, "show this user's local server")
	flags.BoolVar(&f.stop, "stop", false, "stop this user's local server; it keeps its data")
	flags.StringVar(&f.local, "local", "", "serve a user's local server in this directory")
	flags.Var(&f.idle, "idle", "with --local: leave when there was no session for this time")
	for _, hidden := range []string{"local", "idle"} {
		flags.Lookup(hidden).Hidden = true
	}
	f.out.flag(c, "with --status: the socket, if the server runs")
	c.MarkFlagsMutuallyExclusive("data", "memory", "status", "stop", "local")
	return c
}

// run does the one thing that was asked for.
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
	return p.serve()
}
