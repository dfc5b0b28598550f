package harness

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
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

func TestJavaProgramCompilesAndRuns(t *testing.T) {
	program := JavaProgram{Sources: fstest.MapFS{"a/Hello.java": {Data: []byte(hello)}}}
	for range 2 {
		out, err := program.Command(t, "Hello", "world").Output()
		if err != nil || string(out) != "hello world" {
			t.Errorf("output %q, %v", out, err)
		}
	}
}

func TestJavaProgramReportsCompilerErrors(t *testing.T) {
	program := JavaProgram{Sources: fstest.MapFS{"Broken.java": {Data: []byte(`class Broken { int x = ""; }`)}}}
	_, err := program.compile()
	if errors.Is(err, ErrNotInstalled) {
		t.Skip("SKIPPED:", err)
	}
	if err == nil || !strings.Contains(err.Error(), "incompatible types") {
		t.Errorf("compile = %v, want the compiler's message", err)
	}
}
