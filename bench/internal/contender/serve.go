package contender

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// Serve is a contender: it does what it reads from in with the library, and
// answers on out, until in ends.
func Serve(ctx context.Context, l lockwork.Library, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		servers, text, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Fprintln(out, answer(ctx, l, servers, text)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(ctx context.Context, l lockwork.Library, servers, text string) string {
	w, err := lockwork.ParseWork(text)
	if err != nil {
		return line("error", err.Error())
	}
	r, err := lockwork.Do(ctx, l, servers, w)
	switch {
	case errors.Is(err, lockwork.ErrUnsupported):
		return line("unsupported", err.Error())
	case err != nil:
		return line("error", err.Error())
	}
	return line("ok", r.String())
}

func line(word, text string) string { return word + " " + strings.ReplaceAll(text, "\n", "; ") }
