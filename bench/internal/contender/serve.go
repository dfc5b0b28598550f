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

// Serve runs a contender: it reads works from in, does them with the library, and writes
// the answers to out, until in ends.
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
