package delivery

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// sandbox runs a script in a writable overlay of the machine's file system. Then it lists the
// files that the script changed, which are in upper. The overlay ends with the namespace.
const sandbox = `set -eu
work=$1 script=$2
mount -t tmpfs none "$work"
mkdir "$work/upper" "$work/inner" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/inner" "$work/root"
mount --rbind /proc "$work/root/proc"
mount --rbind /dev "$work/root/dev"
mkdir -p "$work/root/run" "$work/root/sandbox"
mount -t tmpfs none "$work/root/run"
mount -t tmpfs none "$work/root/tmp"
mount --bind "$3" "$work/root/sandbox"
chroot "$work/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -eu "/sandbox/$script"
echo "== left"
(cd "$work/upper" && find . -mindepth 1 ! -type d | LC_ALL=C sort)
`

// inSandbox runs a script in an overlay of this machine's file system, with files in
// /sandbox. It returns the script's output, and the files that the script created, changed,
// or deleted.
func inSandbox(t *testing.T, script string, files ...string) (output string, left []string) {
	t.Helper()
	if os.Getuid() != 0 {
		harness.SkipOrFail(t, "an overlay of the file system takes root")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.SkipOrFail(t, "unshare is not installed")
	}
	work, share := t.TempDir(), t.TempDir()
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(share, filepath.Base(path)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(share, "script"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, unshare, "--mount", "sh", "-c", "mount -t tmpfs none "+work+" && mkdir "+work+"/u "+work+"/w "+work+"/r && mount -t overlay overlay -o lowerdir=/,upperdir="+work+"/u,workdir="+work+"/w "+work+"/r").CombinedOutput(); err != nil {
		harness.SkipOrFail(t, "no overlay can be mounted here: "+strings.TrimSpace(string(out)))
	}
	out, err := exec.CommandContext(ctx, unshare, "--mount", "sh", "-c", sandbox, "sandbox", work, "script", share).CombinedOutput()
	output, list, ended := strings.Cut(string(out), "== left\n")
	if err != nil || !ended {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(list) {
		left = append(left, strings.TrimPrefix(strings.TrimSpace(line), "."))
	}
	return output, left
}
