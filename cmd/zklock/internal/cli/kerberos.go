package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkkerberos"
)

const kerberosHelp = `Kerberos: --kerberos-keytab logs in with a file of keys. --kerberos-principal is
the name of the client, by default that of the first key. --kerberos-ccache uses
the tickets of kinit in a file, or "default" for the file of KRB5CCNAME.
KRB5_CONFIG names krb5.conf. --kerberos-server is the name of the servers, in
which _HOST stands for the host.`

// defaultCCache is the value of --kerberos-ccache for the user's default.
const defaultCCache = "default"

// kerberos is the settings for authentication by Kerberos.
type kerberos struct {
	keytab, ccache, principal, server string
}

func (k *kerberos) flags(f *pflag.FlagSet) {
	f.StringVar(&k.keytab, "kerberos-keytab", "", "`file` with keys; enables Kerberos")
	f.StringVar(&k.ccache, "kerberos-ccache", "", "ticket `file`, or default; enables Kerberos")
	f.StringVar(&k.principal, "kerberos-principal", "", "`name` of the client: NAME@REALM")
	f.StringVar(&k.server, "kerberos-server", "", "`name` of the servers; default: "+zkkerberos.DefaultServer)
}

// isKerberosLogin reports whether a flag says what to log in with. A command needs one of them.
func isKerberosLogin(flag string) bool { return flag == "kerberos-keytab" || flag == "kerberos-ccache" }

// choosesKerberosLogin reports whether a flag that says what to log in with is set. It then
// overrides the other one of contexts and of the environment.
func choosesKerberosLogin(f *pflag.FlagSet) bool {
	return f.Changed("kerberos-keytab") || f.Changed("kerberos-ccache")
}

// wanted reports whether a setting enables Kerberos.
func (k *kerberos) wanted() bool { return k.keytab != "" || k.ccache != "" }

// check returns an error if the settings contradict each other.
func (k *kerberos) check() error {
	switch {
	case k.keytab != "" && k.ccache != "":
		return UsageError("--kerberos-keytab and --kerberos-ccache are given: give one of them")
	case !k.wanted() && (k.principal != "" || k.server != ""):
		return UsageError("--kerberos-principal and --kerberos-server need --kerberos-keytab or --kerberos-ccache")
	}
	if k.wanted() {
		_, err := k.mechanism()
		return err
	}
	return nil
}

// mechanism returns the mechanism for SASL.
func (k *kerberos) mechanism() (zk.SASLMechanism, error) {
	opts := zkkerberos.Options{Keytab: k.keytab, CCache: k.ccache, Principal: k.principal, Server: k.server}
	if opts.CCache == defaultCCache {
		opts.CCache = ""
	}
	m, err := zkkerberos.New(&opts)
	if err != nil {
		return nil, UsageError("%w", err)
	}
	return m, nil
}

// environment adds the variables for a command that runs under a lock.
func (k *kerberos) environment(env map[string]string) {
	env["ZKLOCK_KERBEROS_KEYTAB"] = absoluteKerberos(k.keytab)
	env["ZKLOCK_KERBEROS_CCACHE"] = absoluteKerberos(k.ccache)
	env["ZKLOCK_KERBEROS_PRINCIPAL"] = k.principal
	env["ZKLOCK_KERBEROS_SERVER"] = k.server
}

// absoluteKerberos returns the absolute path of a keytab or a credential cache. It keeps
// "default" and the types of caches that have no path.
func absoluteKerberos(name string) string {
	file := strings.TrimPrefix(name, "FILE:")
	if name == defaultCCache || strings.Contains(file, ":") && !filepath.IsAbs(file) {
		return name
	}
	return absolutePath(file)
}
