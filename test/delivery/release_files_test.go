package delivery

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// TestReleaseFilesAreReproducible makes the files of a release twice. Both must be identical.
func TestReleaseFilesAreReproducible(t *testing.T) {
	if runtime.GOOS != "linux" {
		harness.SkipOrFail(t, "a release is made on Linux")
	}
	dir, again := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, out := range []string{dir, again} {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Minute)
		defer cancel()
		if err := run(exec.CommandContext(ctx, "../../packaging/release", out)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"SHA256SUMS", "zklock-" + zklock.Version + ".spdx.json"}
	for _, arch := range []string{"amd64", "arm64"} {
		want = append(want, "zklock_"+zklock.Version+"_"+arch+".deb", "zklock-"+zklock.Version+"-image-"+arch+".tar")
		for _, os := range []string{"linux", "darwin", "windows"} {
			want = append(want, "zklock-"+zklock.Version+"-"+os+"-"+arch+".tar.gz")
		}
	}
	want = append(want, "zklock-"+zklock.Version+"-1.x86_64.rpm", "zklock-"+zklock.Version+"-1.aarch64.rpm")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files, want %d: %v", len(files), len(want), err)
	}
	sums := string(content(t, filepath.Join(dir, "SHA256SUMS")))
	for _, name := range want {
		a, b := content(t, filepath.Join(dir, name)), content(t, filepath.Join(again, name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs the second time: %d and %d bytes", name, len(a), len(b))
		}
		if sum := sha256.Sum256(a); name != "SHA256SUMS" && !strings.Contains(sums, hex.EncodeToString(sum[:])+"  "+name+"\n") {
			t.Errorf("SHA256SUMS does not have %s", name)
		}
	}
	archivesContainCommand(t, dir)
	imageContainsCommand(t, dir)
	billOfMaterials(t, filepath.Join(dir, "zklock-"+zklock.Version+".spdx.json"))
}

// archivesContainCommand checks the archives, and runs the command built for this machine.
func archivesContainCommand(t *testing.T, dir string) {
	for system, magic := range map[string]string{"linux": "\x7fELF", "darwin": "\xcf\xfa\xed\xfe", "windows": "MZ"} {
		for _, arch := range []string{"amd64", "arm64"} {
			name := fmt.Sprintf("zklock-%s-%s-%s.tar.gz", zklock.Version, system, arch)
			zipped, err := gzip.NewReader(bytes.NewReader(content(t, filepath.Join(dir, name))))
			if err != nil {
				t.Fatal(err)
			}
			files := untar(t, zipped)
			suffix := ""
			if system == "windows" {
				suffix = ".exe"
			}
			if !strings.HasPrefix(files["./zklock"+suffix], magic) || files["./LICENSE"] == "" || files["./completion/zklock.bash"] == "" ||
				system != "windows" && files["./man/zklock-run.1"] == "" {
				t.Errorf("%s does not contain the command and its documents", name)
			}
			if system == runtime.GOOS && arch == runtime.GOARCH {
				bin := filepath.Join(t.TempDir(), "zklock")
				if err := os.WriteFile(bin, []byte(files["./zklock"]), 0o700); err != nil {
					t.Fatal(err)
				}
				if out, err := command(t, bin, "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "zklock "+zklock.Version+" ") {
					t.Errorf("%s: %q, %v", name, out, err)
				}
			}
		}
	}
}

// imageContainsCommand checks that the images have the format of docker load, and the settings
// of the Dockerfile.
func imageContainsCommand(t *testing.T, dir string) {
	m := readImage(t)
	for _, arch := range []string{"amd64", "arm64"} {
		files := untar(t, bytes.NewReader(content(t, filepath.Join(dir, "zklock-"+zklock.Version+"-image-"+arch+".tar"))))
		var manifest []struct {
			Config   string
			RepoTags []string
			Layers   []string
		}
		var config struct {
			Architecture, OS string
			Config           struct {
				User                 string
				Env, Entrypoint, Cmd []string
				Volumes              map[string]struct{}
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		if err := errors.Join(json.Unmarshal([]byte(files["./manifest.json"]), &manifest), json.Unmarshal([]byte(files["./config.json"]), &config)); err != nil || len(manifest) != 1 {
			t.Fatalf("%s: %v, %+v", arch, err, manifest)
		}
		layer := files["./"+manifest[0].Layers[0]]
		if sum := sha256.Sum256([]byte(layer)); config.RootFS.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the configuration names another layer", arch)
		}
		run := config.Config
		if config.Architecture != arch || run.User != m.user || fmt.Sprint(run.Env) != fmt.Sprint(m.env) ||
			fmt.Sprint(append(run.Entrypoint, run.Cmd...)) != fmt.Sprint(m.argv) || len(run.Volumes) != 1 {
			t.Errorf("%s: %+v, the Dockerfile says %+v", arch, config, m)
		}
		owners := map[string]string{}
		for r := tar.NewReader(strings.NewReader(layer)); ; {
			h, err := r.Next()
			if err != nil {
				break
			}
			owners[strings.TrimSuffix(h.Name, "/")] = fmt.Sprintf("%d %o", h.Uid, h.Mode&0o7777)
		}
		for name, want := range map[string]string{"usr/bin/zklock": "0 755", "etc/passwd": "0 644", "data": "65532 700", "tmp": "65532 700"} {
			if owners[name] != want {
				t.Errorf("%s: %s has owner and mode %q, want %q", arch, name, owners[name], want)
			}
		}
	}
}

// billOfMaterials checks that the SPDX file lists the modules of the command.
func billOfMaterials(t *testing.T, path string) {
	var list struct {
		SPDXVersion string
		Packages    []struct{ SPDXID, Name, VersionInfo string }
		Relations   []struct{ RelatedSpdxElement string } `json:"relationships"`
	}
	if err := json.Unmarshal(content(t, path), &list); err != nil {
		t.Fatal(err)
	}
	versions, ids := map[string]string{}, map[string]bool{}
	for _, p := range list.Packages {
		versions[p.Name], ids[p.SPDXID] = p.VersionInfo, true
	}
	for name, prefix := range map[string]string{module: "v" + zklock.Version, "stdlib": "1.", "github.com/spf13/cobra": "v1.", "golang.org/x/sys": "v0."} {
		if !strings.HasPrefix(versions[name], prefix) {
			t.Errorf("%s %q, want %s", name, versions[name], prefix)
		}
	}
	for _, r := range list.Relations {
		if !ids[r.RelatedSpdxElement] {
			t.Errorf("a relationship to %s, which is not in the list", r.RelatedSpdxElement)
		}
	}
	if list.SPDXVersion != "SPDX-2.3" || len(list.Relations) != len(list.Packages) {
		t.Errorf("%s, %d packages, %d relationships", list.SPDXVersion, len(list.Packages), len(list.Relations))
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// untar returns the contents of an archive's files, by name.
func untar(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
	}
}
