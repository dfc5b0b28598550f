package jvm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClasspathNamesWhatIsMissing(t *testing.T) {
	_, err := Classpath("no-such-jar-anywhere")
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "no-such-jar-anywhere.jar") {
		t.Errorf("Classpath = %v, want ErrNotInstalled with the jar's name", err)
	}
}

func TestClasspathTakesDirectories(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	got, err := Classpath(a, b)
	if want := a + ":" + b; err != nil || got != want {
		t.Errorf("Classpath = %q, %v, want %q", got, err, want)
	}
}

const hello = `public class Hello {
	public static void main(String[] args) { System.out.print("hello " + args[0]); }
}`

func TestCompileAndRun(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "Hello.java")
	if err := os.WriteFile(source, []byte(hello), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Compile(t.Context(), dir, dir, source)
	if errors.Is(err, ErrNotInstalled) {
		t.Skip("SKIPPED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := Command(dir, "Hello", "world")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil || string(out) != "hello world" {
		t.Errorf("output %q, %v", out, err)
	}
}

func TestCompileReportsErrors(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "Broken.java")
	if err := os.WriteFile(source, []byte("class Broken { int x = \"\"; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Compile(t.Context(), dir, dir, source)
	if errors.Is(err, ErrNotInstalled) {
		t.Skip("SKIPPED:", err)
	}
	if err == nil || !strings.Contains(err.Error(), "incompatible types") {
		t.Errorf("Compile = %v, want the compiler's message", err)
	}
}
