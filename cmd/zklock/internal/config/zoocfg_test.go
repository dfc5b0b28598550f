package config

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// parse parses a valid text.
func parse(t *testing.T, text string) *ServerConfig {
	t.Helper()
	c, err := ParseServerConfig("zoo.cfg", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestServerOptions checks every key that sets an option of the server.
func TestServerOptions(t *testing.T) {
	for in, want := range map[string]zkserver.Options{
		"":                                 {},
		"tickTime=3000":                    {TickTime: 3 * time.Second},
		"dataDir=/var/lib/x/":              {DataDir: "/var/lib/x"},
		"minSessionTimeout=400":            {MinSessionTimeout: 400 * time.Millisecond},
		"maxSessionTimeout=-1":             {}, // the default, as in ZooKeeper
		"nio.sessionlessCnxnTimeout=5000":  {HandshakeTimeout: 5 * time.Second},
		"maxClientCnxns=7":                 {MaxClientConns: 7},
		"maxClientCnxns=0":                 {MaxClientConns: -1},
		"maxClientCnxns=-1":                {MaxClientConns: -1},
		"maxCnxns=-1":                      {},
		"\ufefftickTime=4000\r\n":          {TickTime: 4 * time.Second},
		"tickTime = 4000\t \r":             {TickTime: 4 * time.Second},
		"jute.maxbuffer=0X9FFFFF":          {MaxFrame: 0x9fffff},
		"maxCnxns=1000":                    {MaxConns: 1000},
		"jute.maxbuffer=0xfffff":           {MaxFrame: 0xfffff},
		"jute.maxbuffer=4194304":           {MaxFrame: 4 << 20},
		"globalOutstandingLimit=10":        {MaxOutstandingTotal: 10},
		"snapCount=5":                      {SnapshotRecords: 5},
		"snapSizeLimitInKb=1024":           {SnapshotBytes: 1 << 20},
		"snapSizeLimitInKb=-1":             {SnapshotBytes: math.MaxInt64},
		"autopurge.snapRetainCount=5":      {SnapshotsKept: 5},
		"autopurge.snapRetainCount=1":      {SnapshotsKept: 3},
		"forceSync=no":                     {NoSync: true},
		"forceSync=yes":                    {},
		"forceSync=True":                   {},
		"forceSync = no \r\nskipACL=false": {NoSync: true},
		"DigestAuthenticationProvider.superDigest=super:a=": {SuperDigest: "super:a="},
		"superUser=bob": {SuperUsers: []string{"bob"}},
		"zookeeper.superUser=bob\nsuperUser.1=eve\nzookeeper.superUser.two=ann\nsuperUser.3=": {SuperUsers: []string{"bob", "eve", "ann"}},
		"authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\nzookeeper.ensembleAuthName=blue, green": {
			AuthProviders: []string{"ensemble"}, EnsembleNames: []string{"blue", "green"}},
		"znode.container.maxNeverUsedIntervalMs=5000":                {ContainerNeverUsed: 5 * time.Second},
		"znode.container.maxNeverUsedIntervalMs=0":                   {},
		"X509AuthenticationProvider.superUser=CN=a,O=b":              {X509SuperUser: "CN=a,O=b"},
		"sessionRequireClientSASLAuth=true":                          {RequireSASL: true},
		"enforce.auth.enabled=true\nenforce.auth.schemes=sasl, x509": {EnforceAuthSchemes: []string{"sasl", "x509"}},
		"enforce.auth.enabled=false\nenforce.auth.schemes=sasl":      {},
		"skipACL=yes": {SkipACL: true},
		"4lw.commands.whitelist=srvr, mntr ,,stat": {FourLetterWords: []string{"srvr", "mntr", "stat"}},
		"4lw.commands.whitelist=*":                 {FourLetterWords: []string{"*"}},
		"4lw.commands.whitelist=":                  {},
		"extendedTypesEnabled=TRUE":                {ExtendedTypes: true},
		"zookeeper.extendedTypesEnabled=true":      {ExtendedTypes: true},
		"znode.container.checkIntervalMs=500":      {ContainerCheckInterval: 500 * time.Millisecond},
		"reconfigEnabled=true":                     {ReconfigEnabled: true},
		"enforceQuota=true":                        {EnforceQuota: true},
		"audit.enable=true":                        {Audit: true},
		"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\nauthProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider": {
			AuthProviders: []string{"sasl", "x509"}},
		"DigestAuthenticationProvider.digestAlg=SHA1": {},
	} {
		if want.TickTime == 0 {
			want.TickTime = 3 * time.Second // the default of a file
		}
		if got := parse(t, in).Server; !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", in, got, want)
		}
	}
}

// TestAddressesToListenOn checks the four keys of addresses.
func TestAddressesToListenOn(t *testing.T) {
	const store = "\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.pem"
	for in, want := range map[string][2]string{
		"":                                      {"127.0.0.1:2181", ""},
		"clientPortAddress=::1\nclientPort=99":  {"[::1]:99", ""},
		"clientPortAddress=[::1]\nclientPort=1": {"[::1]:1", ""},
		"clientPort=1\nclientPortAddress=a.b":   {"a.b:1", ""},
		"secureClientPort=2281" + store:         {"", ":2281"},
		"clientPort=1\nsecureClientPort=2\nsecureClientPortAddress=h" + store: {":1", "h:2"},
		"secureClientPort=0":                          {"127.0.0.1:2181", ""},
		"clientPort=0":                                {"", ""},
		"clientPort=0\nclientPort=1":                  {":1", ""},
		"clientPort=0\nsecureClientPort=2281" + store: {"", ":2281"},
	} {
		c := parse(t, in)
		if c.Listen() != want[0] || c.Secure() != want[1] {
			t.Errorf("%q listens at %q and %q, want %q", in, c.Listen(), c.Secure(), want)
		}
	}
}

// TestMetricsListenOnLoopback checks the default address of metrics, and addresses in the file.
func TestMetricsListenOnLoopback(t *testing.T) {
	const class = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"
	for in, want := range map[string]string{
		"":                                   "",
		class:                                "127.0.0.1:7000",
		class + "metricsProvider.httpPort=9": "127.0.0.1:9",
		class + "metricsProvider.httpHost=0.0.0.0\nmetricsProvider.httpPort=9": "0.0.0.0:9",
		"metricsProvider.httpPort=9": "",
		"metricsProvider.className=org.apache.zookeeper.metrics.impl.NullMetricsProvider": "",
	} {
		if got := parse(t, in).Metrics; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestUsersAndTLS(t *testing.T) {
	c := parse(t, "zookeeper.java.security.auth.login.config=/etc/jaas.conf\nsasl.serverconfig=Mine\n"+
		"SASLAuthenticationProvider.superPassword=geheim\nssl.keyStore.location=/k.pem\nssl.keyStore.password=x\nssl.clientAuth=none\nclient.portUnification=true")
	if c.JAAS != "/etc/jaas.conf" || c.Section != "Mine" || c.SuperPassword != "geheim" || !c.Unify {
		t.Errorf("%+v", c)
	}
	if files, _, err := c.TLS.Files(); err != nil || files.Cert != "/k.pem" {
		t.Errorf("%+v, %v", files, err)
	}
	if c = parse(t, ""); c.Section != "Server" || c.TLS.Configured() {
		t.Errorf("an empty file: %+v", c)
	}
}

// TestNotes checks the notes about lines, which of them are warnings, and their line numbers.
func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		in      string
		line    int
		warning bool
		want    string
	}{
		{"\ninitLimit=5", 2, false, "initLimit has no effect: there are no other servers"},
		{"maxResponseCacheSize=400", 1, false, "internals of ZooKeeper"},
		{"zookeeper.maxResponseCacheSize=400", 1, false, "zookeeper.maxResponseCacheSize has no effect"},
		{"clientTcpKeepAlive=true", 1, false, "this server always does this"},
		{"peerType=participant", 1, false, "no other servers"},
		{"quorum.auth.enableSasl=true", 1, false, "no other servers"},
		{"ssl.quorum.keyStore.location=/x", 1, false, "no other servers"},
		{"admin.serverPort=8080", 1, false, "--metrics"},
		{"IPAuthenticationProvider.usexforwardedfor=true", 1, false, "no admin server"},
		{"fips-mode=true", 1, false, "accepts DIGEST-MD5"},
		{"dataLogDir=/log", 1, true, "dataLogDir has no effect"},
		{"autopurge.purgeInterval=1", 1, false, "after each snapshot"},
		{"tickTme=1", 1, true, "tickTme is unknown and has no effect; is tickTime meant?"},
		{"ticktime=1", 1, true, "is tickTime meant?"},
		{"clientprot=1", 1, true, "is clientPort meant?"},
		{"ssl.keystore.location=/x", 1, true, "is ssl.keyStore.location meant?"},
		{"whatever.it.is=1", 1, true, "whatever.it.is is unknown and has no effect"},
		{"a\\u001b]0;x\\u0007=1", 1, true, `"a\x1b]0;x\a" is unknown`},
		{"\xff\xfe=1", 1, true, `"\xff\xfe" is unknown`},
		{strings.Repeat("k", 500) + "=1", 1, true, "kkk..."},
		{"forceSync=no", 1, true, "power loss"},
		{"skipACL=yes", 1, true, "every client may do everything"},
		{"4lw.commands.whitelist=srvr,\x1bxy", 1, true, `the four-letter word "\x1bxy" is unknown`},
		{"authProvider.9=com.example.Mine", 1, true, "cannot load the Java class com.example.Mine"},
		{"authProvider.9=org.apache.zookeeper.server.auth.IPAuthenticationProvider", 1, false, "is there anyway"},
		{"metricsProvider.className=com.example.Mine", 1, true, "cannot load the Java class"},
		{"metricsProvider.httpPort=9", 0, false, "have no effect without metricsProvider.className"},
		{"metricsProvider.httpHost=h", 0, false, "have no effect without metricsProvider.className"},
		{"metricsProvider.exportJvmInfo=true", 1, false, "no JVM"},
		{"clientPort=1\n\nzookeeper.clientPort=2", 1, false, "clientPort is set again on line 3"},
	} {
		c := parse(t, tt.in)
		if len(c.Notes) != 1 {
			t.Errorf("%q: notes %+v", tt.in, c.Notes)
			continue
		}
		if n := c.Notes[0]; n.Line != tt.line || n.Warning != tt.warning || !strings.Contains(n.Text, tt.want) {
			t.Errorf("%q: %+v, want %q", tt.in, n, tt.want)
		}
	}
}

// TestRelativePaths checks that paths are relative to the working directory, as in ZooKeeper, and
// are shown in full.
func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	c := parse(t, "dataDir=./data\njava.security.auth.login.config=jaas.conf")
	if c.Server.DataDir != filepath.Join(dir, "data") || c.JAAS != filepath.Join(dir, "jaas.conf") {
		t.Errorf("data in %q, users in %q", c.Server.DataDir, c.JAAS)
	}
	if len(c.Notes) != 2 || !c.Notes[0].Warning || !strings.Contains(c.Notes[0].Text, filepath.Join(dir, "data")) {
		t.Errorf("%+v", c.Notes)
	}
}

// TestConfidentialFiles checks which files other users must not read.
func TestConfidentialFiles(t *testing.T) {
	for in, want := range map[string]bool{
		"tickTime=2000": false, "ssl.keyStore.password=": false, "ssl.keyStore.passwordPath=/p": false,
		"ssl.keyStore.password=x": true, "zookeeper.ssl.trustStore.password=x": true, "ssl.quorum.keyStore.password=x": true,
		"DigestAuthenticationProvider.superDigest=super:a=": true, "SASLAuthenticationProvider.superPassword=x": true,
	} {
		if got := parse(t, in).Confidential; got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"\nserver.1=zk1:2888:3888", "line 2: server.1: this server is one node"},
		{"dynamicConfigFile=/x", "one node"},
		{"group.1=1:2", "one node"},
		{"weight.1=1", "one node"},
		{"peerType=observer", "run Apache ZooKeeper"},
		{"tickTime=0", "tickTime: \"0\" is not a whole number"},
		{"tickTime=two", "whole number"},
		{"tickTime=99999999999", "whole number"},
		{"jute.maxbuffer=0x+1", "whole number"},
		{"clientPort=65536", "from 0 to 65535"},
		{"clientPortAddress=a b", "not an address"},
		{"dataDir=", "not a path"},
		{"dataDir=/a\\u0000b", "not a path"},
		{"extendedTypesEnabled=maybe", "not true or false"},
		{"DigestAuthenticationProvider.superDigest=hunter2", "super:BASE64"},
		{"DigestAuthenticationProvider.digestAlg=MD5", "SHA1"},
		{"DigestAuthenticationProvider.enabled=false", "cannot disable"},
		{"enforce.auth.enabled=true", "names no scheme"},
		{"ensembleAuthName=", "names no ensemble"},
		{"ensembleAuthName= , ", "names no ensemble"},
		{"allowSaslFailedClients=true", "disconnects"},
		{"secureClientPort=2281", "ssl.keyStore.location"},
		{"client.portUnification=true", "ssl.keyStore.location"},
		{"clientPortAddress=0.0.0.0", "clientPort is not: set clientPort, or remove clientPortAddress"},
		{"clientPortAddress=0.0.0.0\nclientPort=0", "clientPort is not"},
		{"clientPortAddress=h\nsecureClientPort=2281\nssl.keyStore.location=/k.pem", "clientPort is not"},
		{"secureClientPortAddress=h", "secureClientPort is not: set secureClientPort, or remove secureClientPortAddress"},
		{"ssl.crl=true", "revocation"},
		{"ssl.clientHostnameVerification=true", "host names"},
		{"minSessionTimeout=0", "-1 for the default"},
		{"maxSessionTimeout=0", "-1 for the default"},
		{"metricsProvider.httpPort=0", "from 1 to 65535"},
		{"enforce.auth.enabled=true\nenforce.auth.schemes=sasl,world", `enforce.auth.schemes names "world"`},
		{"forceSync=false", `ZooKeeper ignores "false" and syncs`},
		{"forceSync=NO", `ZooKeeper ignores "NO" and syncs`},
		{"skipACL=true", `ZooKeeper ignores "true" and checks ACLs`},
		{"skipACL=Yes", `ZooKeeper ignores "Yes" and checks ACLs`},
		{"client.portUnification=yes", "not true or false"},
		{"sessionRequireClientSASLAuth=Yes", "not true or false"},
		{"x=\\u12", "line 1"},
		{"x=" + strings.Repeat("y", MaxServerConfig), "longer than"},
	} {
		_, err := ParseServerConfig("zoo\x1b.cfg", strings.NewReader(tt.in))
		if err == nil || !strings.HasPrefix(err.Error(), "zoo.cfg: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q gave %v, want an error with %q", tt.in, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("the error has a secret or an escape in it: %q", err)
		}
	}
}

// TestSampleConfiguration reads the sample file of ZooKeeper.
func TestSampleConfiguration(t *testing.T) {
	b, err := os.ReadFile("testdata/zoo_sample.cfg")
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, string(b))
	if c.Server.TickTime != 2*time.Second || c.Server.DataDir != "/tmp/zookeeper" || c.Listen() != ":2181" || c.Metrics != "" {
		t.Errorf("%+v", c)
	}
	for _, n := range c.Notes {
		if n.Warning || !strings.Contains(n.Text, "no other servers") {
			t.Errorf("a note about the sample: %+v", n)
		}
	}
	if len(c.Notes) != 2 {
		t.Errorf("%d notes, want those of initLimit and syncLimit", len(c.Notes))
	}
}

// TestEveryKeyIsInOneGroup checks that no key is in two groups, and that no key with an effect
// counts as idle.
func TestEveryKeyIsInOneGroup(t *testing.T) {
	keys := knownKeys()
	total := len(placeKeys()) + len(limitKeys()) + len(storageKeys()) + len(authKeys()) + len(otherKeys())
	if len(keys) != total {
		t.Errorf("%d keys of %d: one is there twice", len(keys), total)
	}
	for key := range keys {
		if why, idle := idleKeys().exact[key]; idle {
			t.Errorf("%s has a meaning and none: %s", key, why)
		}
	}
}

// TestErrorsOfSessionLimitsNameKeys checks that the errors name the keys of the file, not the
// options of the Go API.
func TestErrorsOfSessionLimitsNameKeys(t *testing.T) {
	for text, want := range map[string]string{
		"maxSessionTimeout=100":                         "minSessionTimeout, which is twice tickTime=3000 unless it is set, is above maxSessionTimeout=100",
		"tickTime=2000\nmaxSessionTimeout=3999":         "minSessionTimeout, which is twice tickTime=2000 unless it is set, is above maxSessionTimeout=3999",
		"minSessionTimeout=9000\nmaxSessionTimeout=500": "minSessionTimeout=9000 is above maxSessionTimeout=500",
		"tickTime=2000\nmaxSessionTimeout=4000":         "",
		"minSessionTimeout=50\nmaxSessionTimeout=60":    "",
		"minSessionTimeout=99000":                       "",
	} {
		_, err := ParseServerConfig("zoo.cfg", strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "zoo.cfg: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
