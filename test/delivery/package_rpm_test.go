package delivery

import (
	"slices"
	"strings"
	"testing"
)

// TestRPMInstallsAndRemoves installs the rpm without checking dependencies, because the rpm
// database of Debian is empty. So the test reads the requirements of the package instead.
func TestRPMInstallsAndRemoves(t *testing.T) {
	lookPath(t, "rpm")
	b := packages(t)
	output, left := inSandbox(t, `
exec 2>&1
echo "== requires"
rpm -qp --requires /sandbox/*.rpm
echo "== config"
rpm -qpc /sandbox/*.rpm
echo "== files"
rpm -qpl /sandbox/*.rpm
echo "== info"
rpm -qp --qf '%{NAME} %{VERSION} %{LICENSE} %{SUMMARY}\n' /sandbox/*.rpm
echo "== install"
rpm --force-debian --nodeps -i /sandbox/*.rpm
echo "== verify"
rpm --force-debian -V --nodeps zklock
echo "== run"
ZKLOCK_HOME=/tmp/home ZKLOCK_IDLE=1s zklock run demo -- sh -c 'echo "token $ZKLOCK_TOKEN"'
echo "== removed"
echo '# mine' >>/etc/zklock/zoo.cfg
rpm --force-debian --nodeps -e zklock
ls -d /usr/bin/zklock /usr/share/zklock /usr/share/doc/zklock /usr/lib/systemd/system/zklock* 2>/dev/null || true
`, b.rpm)
	for name, want := range map[string]string{"verify": "", "config": "/etc/zklock/zoo.cfg\n"} {
		if got := section(output, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := section(output, "info"); !strings.HasPrefix(got, "zklock 0.") || !strings.Contains(got, "Apache-2.0 Distributed locks") {
		t.Errorf("the info is %q", got)
	}
	if got := section(output, "install"); !strings.Contains(got, "zklock run demo -- echo hello") {
		t.Errorf("the installation prints %q", got)
	}
	if got := section(output, "run"); !strings.HasPrefix(got, "token ") {
		t.Errorf("the installed command printed %q", got)
	}
	for line := range strings.Lines(section(output, "requires")) {
		if !strings.HasPrefix(line, "rpmlib(") && !strings.HasPrefix(line, "/bin/sh") && !strings.HasPrefix(line, "config(zklock)") {
			t.Errorf("the package requires %s", line)
		}
	}
	files := strings.Fields(section(output, "files"))
	for _, want := range []string{"/usr/bin/zklock", "/usr/share/zsh/site-functions/_zklock", "/usr/share/licenses/zklock/LICENSE", "/usr/lib/systemd/system/zklock-run@.service", "/usr/share/man/man1/zklock-run.1.gz"} {
		if !slices.Contains(files, want) {
			t.Errorf("the package has no %s", want)
		}
	}
	if got := section(output, "removed"); strings.Contains(got, "/usr/") {
		t.Errorf("left: %s", got)
	}
	for _, path := range left {
		// A changed file is kept as .rpmsave.
		if strings.Contains(path, "zklock") && path != "/etc/zklock/zoo.cfg.rpmsave" {
			t.Errorf("%s is left of a package that was removed", path)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
}
