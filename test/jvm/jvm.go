// Package jvm compiles and runs Java programs against the jars of Debian's
// packages.
package jvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNotInstalled says that a jar or a Java tool is missing here; its text
// names which. scripts/install-deps installs them on Debian.
var ErrNotInstalled = errors.New("jvm: not installed, run scripts/install-deps as root")

// compileTimeout bounds one run of javac, which takes two seconds on an idle
// machine and shares it with everything else on a busy one.
const compileTimeout = 3 * time.Minute

// jarDir is where Debian's packages put their jars.
const jarDir = "/usr/share/java"

// Classpath returns the class path of the named jars, which have no directory
// and no ".jar" ("zookeeper"), and of further directories that contain a slash.
func Classpath(entries ...string) (string, error) {
	paths := make([]string, 0, len(entries))
	for _, entry := range entries {
		path := entry
		if !strings.ContainsRune(entry, filepath.Separator) {
			path = filepath.Join(jarDir, entry+".jar")
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %s", ErrNotInstalled, path)
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ":"), nil
}

// Args returns the arguments of "java" for running class with a small heap that
// is quick to start: such a JVM lives for seconds, so the optimizing compiler
// and a parallel collector would cost more than they give.
func Args(classpath, class string, args ...string) []string {
	flags := []string{
		"-Xms32m", "-Xmx256m", "-Xss512k",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-cp", classpath, class,
	}
	return append(flags, args...)
}

// Command returns the command that runs class with [Args].
func Command(classpath, class string, args ...string) (*exec.Cmd, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return exec.Command(java, Args(classpath, class, args...)...), nil
}

// Compile compiles the source files with javac into the directory dir.
func Compile(ctx context.Context, classpath, dir string, sources ...string) error {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	args := append([]string{
		"-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-Xmx256m",
		"-Xlint:all,-path,-processing,-classfile", "-Werror", "-proc:none", "-cp", classpath, "-d", dir,
	}, sources...)
	out, err := exec.CommandContext(ctx, javac, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("jvm: javac %s: %w\n%s", strings.Join(sources, " "), err, out)
	}
	return nil
}
