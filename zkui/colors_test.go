package zkui_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// legibleContrast is the contrast that the Web Content Accessibility Guidelines, level AA, require
// for text of normal size.
const legibleContrast = 4.5

// TestColorsAreLegible checks each color of text on each of its backgrounds.
func TestColorsAreLegible(t *testing.T) {
	css := assets(t, ".css")["base.css"]
	light, dark, _ := strings.Cut(css, `:root[data-theme="dark"]`)
	dark, _, _ = strings.Cut(dark, "}")
	on := map[string][]string{
		"--ink":        {"--ground", "--paper", "--sunk", "--raised", "--wait-wash", "--bad-wash"},
		"--soft":       {"--ground", "--paper", "--sunk"},
		"--dim":        {"--ground", "--paper", "--sunk"},
		"--accent":     {"--paper"},
		"--accent-ink": {"--accent"},
		"--held":       {"--held-wash"},
		"--wait":       {"--paper", "--wait-wash"},
		"--share":      {"--share-wash"},
		"--bad":        {"--paper", "--bad-wash"},
		"--paper":      {"--ink", "--held", "--share", "--bad"}, // on a knot, a button, a tip
	}
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		for front, backs := range on {
			for _, back := range backs {
				if c := contrast(luminance(t, text, front), luminance(t, text, back)); c < legibleContrast {
					t.Errorf("%s: %s on %s has a contrast of %.2f, less than %.1f", theme, front, back, c, legibleContrast)
				}
			}
		}
	}
}

// contrast returns the ratio of two luminances, as the guidelines define it.
func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// luminance returns the luminance of a color, from 0 to 1, as the guidelines define it.
func luminance(t *testing.T, css, name string) float64 {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(name) + `: #([0-9a-f]{6});`).FindStringSubmatch(css)
	if m == nil {
		t.Fatalf("%s has no color", name)
	}
	n, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift uint) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}
