package zoocfg

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     Config
	}{
		{"empty", "", Config{}},
		{"comments and blanks", "# one\n\n  ! two\n", Config{}},
		{"the sample", "tickTime=2000\ninitLimit=10\ndataDir=/var/lib/zookeeper\nclientPort=2181\n", Config{
			TickTime: 2 * time.Second, DataDir: "/var/lib/zookeeper", ClientPort: 2181,
			Warnings: []string{"zoo.cfg line 2: initLimit is not known here and has no effect"},
		}},
		{"all", `clientPortAddress = [::1]
maxClientCnxns: 7
minSessionTimeout 400
maxSessionTimeout=60000
4lw.commands.whitelist=srvr, mntr ,
extendedTypesEnabled=TRUE
znode.container.checkIntervalMs=500
DigestAuthenticationProvider.superDigest=super:abc=
reconfigEnabled=false`, Config{
			ClientAddress: "::1", MaxClientConns: 7, MinSessionTimeout: 400 * time.Millisecond,
			MaxSessionTimeout: time.Minute, FourLetterWords: []string{"srvr", "mntr"}, ExtendedTypes: true,
			ContainerInterval: 500 * time.Millisecond, SuperDigest: "super:abc=",
		}},
		{"with the prefix", "zookeeper.extendedTypesEnabled=true\nzookeeper.reconfigEnabled=true\nzookeeper.4lw.commands.whitelist=*",
			Config{ExtendedTypes: true, ReconfigEnabled: true, FourLetterWords: []string{"*"}}},
		{"no limit of connections", "maxClientCnxns=0", Config{MaxClientConns: -1}},
		{"-1 is the default", "minSessionTimeout=-1\nmaxSessionTimeout=-1", Config{}},
		{"no words", "4lw.commands.whitelist=", Config{FourLetterWords: []string{}}},
		{"the last line of a key wins", "clientPort=1\nclientPort=2", Config{ClientPort: 2}},
		{"a key alone", "sslQuorum", Config{Warnings: []string{"zoo.cfg line 1: sslQuorum is not known here and has no effect"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("zoo.cfg", strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"\nserver.1=zk1:2888:3888", "line 2: server.1: this server is one node"},
		{"dynamicConfigFile=/x", "one node"},
		{"tickTime=0", "tickTime: \"0\" is not a whole number"},
		{"tickTime=two", "whole number"},
		{"tickTime=99999999999", "whole number"},
		{"clientPort=65536", "from 1 to 65535"},
		{"dataDir=data", "not an absolute path"},
		{"extendedTypesEnabled=yes", "neither true nor false"},
		{"DigestAuthenticationProvider.superDigest=hunter2", "super:BASE64"},
		{"x=" + strings.Repeat("y", maxLine), "token too long"},
	}
	for _, tt := range tests {
		_, err := Parse("zoo.cfg", strings.NewReader(tt.in))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q gave %v, want ErrConfig with %q", tt.in, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}

func TestListen(t *testing.T) {
	for want, c := range map[string]Config{
		":2181":      {},
		"[::1]:99":   {ClientAddress: "::1", ClientPort: 99},
		"10.0.0.1:1": {ClientAddress: "10.0.0.1", ClientPort: 1},
	} {
		if got := c.Listen(); got != want {
			t.Errorf("%+v listens at %q, want %q", c, got, want)
		}
	}
}
