package contender

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotInstalled means that a program that the comparison needs is not installed.
var ErrNotInstalled = errors.New("contender: not installed; run scripts/install-deps -bench as root")

//go:embed java/*.java python/*.py
var sources embed.FS

// A Make starts a contender.
type Make struct {
	Name    string
	Command func() *exec.Cmd
}

// Go returns a library of package library, which this program runs.
func Go(name string) (Make, error) {
	self, err := os.Executable()
	if err != nil {
		return Make{}, err
	}
	return Make{name, func() *exec.Cmd { return exec.Command(self, "contender", name) }}, nil
}

// curatorJars are the files of Debian's packages.
var curatorJars = []string{
	"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
	"guava", "slf4j-api", "slf4j-nop", "netty-all",
}

// Curator returns Curator in a JVM, with its defaults. It compiles the classes into dir.
func Curator(ctx context.Context, dir string) (Make, error) {
	paths := []string{dir}
	for _, jar := range curatorJars {
		path := filepath.Join("/usr/share/java", jar+".jar")
		if _, err := os.Stat(path); err != nil {
			return Make{}, fmt.Errorf("%w: %s", ErrNotInstalled, path)
		}
		paths = append(paths, path)
	}
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return Make{}, fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
	}
	if err := os.CopyFS(dir, sources); err != nil {
		return Make{}, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "java", "*.java"))
	if err != nil {
		return Make{}, err
	}
	classpath := strings.Join(paths, ":")
	args := slices.Concat([]string{"-cp", classpath, "-d", dir}, files)
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return Make{}, fmt.Errorf("contender: javac: %w\n%s", err, out)
	}
	return Make{"Curator", func() *exec.Cmd { return exec.Command("java", "-cp", classpath, "Contender") }}, nil
}

// Kazoo returns kazoo with the distribution's Python. It writes the program to dir.
func Kazoo(dir string) (Make, error) {
	const python, module = "/usr/bin/python3", "/usr/lib/python3/dist-packages/kazoo/__init__.py"
	for _, path := range []string{python, module} {
		if _, err := os.Stat(path); err != nil {
			return Make{}, fmt.Errorf("%w: %s", ErrNotInstalled, path)
		}
	}
	if err := os.CopyFS(dir, sources); err != nil {
		return Make{}, err
	}
	return Make{"kazoo", func() *exec.Cmd { return exec.Command(python, filepath.Join(dir, "python", "contender.py")) }}, nil
}
