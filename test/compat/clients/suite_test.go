package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// suiteTimeout limits the run of a suite.
const suiteTimeout = 35 * time.Minute

// ensembleTests matches go-zookeeper's tests that need three servers or a reconfiguration.
const ensembleTests = "BasicCluster|ClientClusterFailover|NoQuorum|DNSHostProviderReconnect|Reconfig"

// goHarness patches the code by which go-zookeeper's tests wait for servers. Its parser cannot
// parse the date in the answer of ZooKeeper 3.8 and later.
var goHarness = strings.NewReplacer(
	"_, ok := FLWSrvr(serverAddrs, time.Second)",
	`oks := FLWRuok(serverAddrs, time.Second)
		ok := !strings.Contains(fmt.Sprint(oks), "false")`)

// outcomes are the results of a suite: "pass", "fail", or "skip" by test.
type outcomes map[string]string

// count returns the number of tests with a result.
func (o outcomes) count(result string) int {
	n := 0
	for _, r := range o {
		if r == result {
			n++
		}
	}
	return n
}

// worse returns the tests that pass in better and not in o.
func (o outcomes) worse(better outcomes) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(better)) {
		if better[name] == "pass" && o[name] != "pass" {
			names = append(names, name)
		}
	}
	return names
}

// runSuite runs a suite's command, which may fail, and logs the end of its output.
func runSuite(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := run(t, cmd, suiteTimeout)
	t.Logf("%s: %v\n%s", cmd.Path, err, out.Bytes()[max(0, out.Len()-2000):])
	return out.Bytes()
}

// kazooSuite runs kazoo's tests, which start the server by the command "java". If ours is true, the
// command starts the embedded server.
func kazooSuite(t *testing.T, ours bool) outcomes {
	t.Helper()
	dir, classpath := t.TempDir(), harness.ZooKeeperClasspath(t, harness.Release39)
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report.xml")
	cmd := harness.Python(t, "kazoo.tests, pytest, objgraph, puresasl, gevent, eventlet", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml="+report, "--pyargs", "kazoo.tests")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ZOOKEEPER_VERSION=3.9.3", "ZOOKEEPER_CLUSTER_SIZE=1", "ZOOKEEPER_CLASSPATH="+classpath,
		fmt.Sprintf("ZOOKEEPER_PORT_OFFSET=%d", port))
	if ours {
		if err := ServerScript(dir, "java"); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	}
	runSuite(t, cmd)
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	results, err := readJUnit(text)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// readJUnit parses a report in JUnit's XML.
func readJUnit(text []byte) (outcomes, error) {
	var report struct {
		Cases []struct {
			Class    string    `xml:"classname,attr"`
			Name     string    `xml:"name,attr"`
			Failures []xmlMark `xml:"failure"`
			Errors   []xmlMark `xml:"error"`
			Skips    []xmlMark `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("clients: report of the tests: %w", err)
	}
	results := outcomes{}
	for _, c := range report.Cases {
		result := "pass"
		if len(c.Skips) > 0 {
			result = "skip"
		}
		if len(c.Failures)+len(c.Errors) > 0 {
			result = "fail"
		}
		results[c.Class+"."+c.Name] = result
	}
	return results, nil
}

// xmlMark is an element without content.
type xmlMark struct{}

// goSuite runs go-zookeeper's tests, which start the server by the command "zkServer.sh". If ours
// is true, the command starts the embedded server.
func goSuite(t *testing.T, ours bool) outcomes {
	t.Helper()
	classpath := harness.ZooKeeperClasspath(t, harness.Release39)
	found, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-zookeeper/zk").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "zk"), os.DirFS(strings.TrimSpace(string(found)))); err != nil {
		t.Fatal(err)
	}
	patchFile(t, filepath.Join(dir, "zk", "server_help_test.go"), goHarness)
	if ours {
		err = ServerScript(dir, "zkServer.sh")
	} else {
		err = realServerScript(dir, classpath)
	}
	if err != nil {
		t.Fatal(err)
	}
	// vet rejects these tests.
	cmd := exec.Command("go", "test", "-json", "-vet=off", "-count=1", "-timeout", suiteTimeout.String(), "-skip", ensembleTests, ".")
	cmd.Dir = filepath.Join(dir, "zk")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "ZOOKEEPER_BIN_PATH="+dir)
	return readGoTest(runSuite(t, cmd))
}

// readGoTest parses the output of "go test -json".
func readGoTest(out []byte) outcomes {
	results := outcomes{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var e struct{ Action, Test string }
		// Other lines come from the build or a server.
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			results[e.Test] = e.Action
		}
	}
	return results
}

// realServerScript writes a zkServer.sh into dir that becomes ZooKeeper's server by exec, so no
// shell remains.
func realServerScript(dir, classpath string) error {
	cmd, err := harness.JavaCommand(classpath, "org.apache.zookeeper.server.quorum.QuorumPeerMain")
	if err != nil {
		return err
	}
	last := len(cmd.Args) - 1
	text := fmt.Sprintf("#!/bin/sh\nexec %s $SERVER_JVMFLAGS %s \"$2\"\n", strings.Join(cmd.Args[:last], " "), cmd.Args[last])
	if err := os.WriteFile(filepath.Join(dir, "zkServer.sh"), []byte(text), 0o755); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	return nil
}

// patchFile changes a file by a replacer, which must have an effect.
func patchFile(t *testing.T, path string, by *strings.Replacer) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	patched := by.Replace(string(text))
	if patched == string(text) {
		t.Fatalf("%s has changed: nothing to replace", path)
	}
	// A copy from the module cache is read-only.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(patched), 0o600); err != nil {
		t.Fatal(err)
	}
}
