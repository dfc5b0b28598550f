package clients

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// superDigestKey is the system property with the digest of the super user.
const superDigestKey = "DigestAuthenticationProvider.superDigest"

// jaasUser matches a user of SASL DIGEST-MD5 in a JAAS file.
var jaasUser = regexp.MustCompile(`user_(\w+)\s*=\s*"([^"]*)"`)

// launch has the settings of a ZooKeeper server: system properties and zoo.cfg. They are in one
// map, because Java makes unknown keys of zoo.cfg system properties.
type launch map[string]string

// parseLaunch parses the arguments of "java" or "zkServer.sh", and the flags of SERVER_JVMFLAGS.
// The last argument with the suffix .cfg is zoo.cfg.
func parseLaunch(args []string, jvmFlags string) (launch, error) {
	l := launch{}
	config := ""
	for _, arg := range append(strings.Fields(jvmFlags), args...) {
		if property, is := strings.CutPrefix(arg, "-D"); is {
			key, value, _ := strings.Cut(property, "=")
			l[strings.TrimPrefix(key, "zookeeper.")] = value
		} else if strings.HasSuffix(arg, ".cfg") {
			config = arg
		}
	}
	if config == "" {
		return nil, fmt.Errorf("clients: no zoo.cfg in the arguments %q", args)
	}
	file, err := os.Open(config)
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, is := strings.Cut(strings.TrimSpace(lines.Text()), "="); is && !strings.HasPrefix(key, "#") {
			l[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return l, nil
}

// addr returns the address of the server. The suites connect to 127.0.0.1 and localhost.
func (l launch) addr() string {
	host := l["clientPortAddress"]
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, l["clientPort"])
}

// options returns the options of the embedded server for the settings.
func (l launch) options() (zkserver.Options, error) {
	opts := zkserver.Options{
		DataDir: l["dataDir"], SuperDigest: l[superDigestKey],
		ExtendedTypes:   l["extendedTypesEnabled"] == "true",
		ReconfigEnabled: l["reconfigEnabled"] == "true",
		EnforceQuota:    l["enforceQuota"] == "true",
		FourLetterWords: []string{"*"}, MaxClientConns: -1,
	}
	if user := l["superUser"]; user != "" {
		opts.SuperUsers = []string{user}
	}
	if text := l["jute.maxbuffer"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return opts, fmt.Errorf("clients: jute.maxbuffer: %w", err)
		}
		opts.MaxFrame = n
	}
	for key, field := range map[string]*time.Duration{
		"tickTime": &opts.TickTime, "minSessionTimeout": &opts.MinSessionTimeout, "maxSessionTimeout": &opts.MaxSessionTimeout,
		"znode.container.checkIntervalMs": &opts.ContainerCheckInterval,
	} {
		if l[key] == "" {
			continue
		}
		ms, err := strconv.Atoi(l[key])
		if err != nil {
			return opts, fmt.Errorf("clients: %s: %w", key, err)
		}
		*field = time.Duration(ms) * time.Millisecond
	}
	return opts, nil
}

// jaasUsers returns the users of the JAAS file, or nil if there is none.
func (l launch) jaasUsers() (map[string]string, error) {
	path := l["java.security.auth.login.config"]
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	var users map[string]string
	for _, match := range jaasUser.FindAllStringSubmatch(string(text), -1) {
		if users == nil {
			users = make(map[string]string)
		}
		users[match[1]] = match[2]
	}
	return users, nil
}
