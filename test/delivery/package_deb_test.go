package delivery

import (
	"slices"
	"strings"
	"testing"
)

// section returns the part of a script's output below a heading.
func section(output, name string) string {
	_, rest, _ := strings.Cut(output, "== "+name+"\n")
	part, _, _ := strings.Cut(rest, "== ")
	return part
}

// TestDebInstallsAndRemoves installs the package, uses it, removes it, and purges it. Then no
// file of it may be left.
func TestDebInstallsAndRemoves(t *testing.T) {
	lookPath(t, "dpkg")
	b := packages(t)
	output, left := inSandbox(t, `
exec 2>&1
echo "== install"
dpkg --force-unsafe-io -i /sandbox/*.deb
echo "== status"
dpkg-query -W -f '${Status}\n' zklock
echo "== verify"
dpkg --verify zklock
echo "== conffiles"
dpkg-query -W -f '${Conffiles}\n' zklock
echo "== files"
dpkg -L zklock
echo "== version"
zklock version
echo "== run"
ZKLOCK_HOME=/tmp/home ZKLOCK_IDLE=1s zklock run demo -- sh -c 'echo "token $ZKLOCK_TOKEN"'
echo "== completion"
bash -c 'source /usr/share/bash-completion/bash_completion 2>/dev/null; source /usr/share/bash-completion/completions/zklock && complete -p zklock'
echo "== page"
dpkg-deb --fsys-tarfile /sandbox/*.deb | tar -xO ./usr/share/man/man1/zklock-run.1.gz | zcat
echo "== units"
systemd-analyze verify --man=no zklock-server.service zklock-server.socket zklock-ui.service zklock-run@billing.service zklock-once@report.service zklock-once@report.timer
echo "== config"
echo '# mine' >>/etc/zklock/zoo.cfg
mkdir -p /etc/zklock/run && echo RUN_COMMAND=true >/etc/zklock/run/billing.conf
dpkg --force-unsafe-io --force-confold -i /sandbox/*.deb | grep Next || true
tail -n 1 /etc/zklock/zoo.cfg
echo "== enabled"
systemctl enable zklock-server.service zklock-ui.service zklock-run@billing.service zklock-once@report.timer 2>&1 | wc -l
find /etc/systemd/system -name 'zklock-*' -printf '%f\n' | LC_ALL=C sort
echo "== stopped"
mkdir -p /run/systemd/system /tmp/bin
printf '#!/bin/sh\necho "$@"\n' >/tmp/bin/systemctl
chmod +x /tmp/bin/systemctl
for action in upgrade failed-upgrade deconfigure remove; do
	echo "$action: $(PATH=/tmp/bin:$PATH /var/lib/dpkg/info/zklock.prerm $action | grep -c '^stop ')"
done
rm -r /run/systemd/system
echo "== removed"
dpkg --force-unsafe-io -r zklock >/dev/null
test ! -e /usr/bin/zklock
tail -n 1 /etc/zklock/zoo.cfg
echo "== purged"
dpkg --force-unsafe-io -P zklock >/dev/null
ls -d /etc/zklock /usr/share/zklock /usr/share/doc/zklock /usr/lib/systemd/system/zklock* 2>/dev/null || true
`, b.deb)
	for name, want := range map[string]string{
		"status": "install ok installed\n", "verify": "", "stopped": "upgrade: 0\nfailed-upgrade: 0\ndeconfigure: 0\nremove: 1\n", "config": "# mine\n", "removed": "# mine\n", "purged": "", "units": "",
		"enabled": "5\nzklock-once@report.timer\nzklock-run@billing.service\nzklock-server.service\nzklock-server.socket\nzklock-ui.service\n",
	} {
		if got := section(output, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"install": "zklock run demo -- echo hello", "conffiles": "/etc/zklock/zoo.cfg ", "version": "zklock 0.", "run": "token ", "completion": "complete -o ", "page": `.TH "ZKLOCK\-RUN" 1 `} {
		if got := section(output, name); !strings.Contains(got, want) {
			t.Errorf("%s: %q has no %q", name, got, want)
		}
	}
	files := strings.Fields(section(output, "files"))
	for _, want := range []string{
		"/usr/bin/zklock", "/etc/zklock/run", "/usr/share/man/man1/zklock.1.gz", "/usr/share/man/man1/zklock-run.1.gz", "/usr/share/man/man1/zklock-serve.1.gz",
		"/usr/share/bash-completion/completions/zklock", "/usr/share/zsh/vendor-completions/_zklock", "/usr/share/fish/vendor_completions.d/zklock.fish",
		"/usr/lib/systemd/system/zklock-server.service", "/usr/lib/systemd/system/zklock-server.socket", "/usr/lib/systemd/system/zklock-ui.service", "/usr/lib/systemd/system/zklock-run@.service",
		"/usr/lib/systemd/system/zklock-once@.service", "/usr/lib/systemd/system/zklock-once@.timer",
		"/usr/share/zklock/grafana/zklock.json", "/usr/share/zklock/prometheus/zklock.rules.yml",
		"/usr/share/doc/zklock/copyright", "/usr/share/doc/zklock/changelog.gz", "/usr/share/doc/zklock/guides/README.md",
	} {
		if !slices.Contains(files, want) {
			t.Errorf("the package has no %s", want)
		}
	}
	for _, path := range left {
		if !ownedByDpkg(path) {
			t.Errorf("%s is left of a package that was purged", path)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
}

// ownedByDpkg reports whether a file belongs to dpkg, or to a cache that its triggers write.
func ownedByDpkg(path string) bool {
	for _, own := range []string{"/var/lib/dpkg/", "/var/log/dpkg.log", "/var/cache/man/", "/var/cache/ldconfig/", "/etc/ld.so.cache"} {
		if strings.HasPrefix(path, own) {
			return true
		}
	}
	return false
}
