package zkui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// assets returns the page's files with this ending, by name.
func assets(t *testing.T, ending string) map[string]string {
	t.Helper()
	names, err := filepath.Glob("assets/*" + ending)
	if err != nil || len(names) == 0 {
		t.Fatalf("no *%s among the assets: %v", ending, err)
	}
	found := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(name)] = string(text)
	}
	return found
}

// TestAssetsInsertOnlyText checks that the scripts never parse data as HTML or as a script, so that
// an owner can write any text.
func TestAssetsInsertOnlyText(t *testing.T) {
	forbidden := regexp.MustCompile(`\.(innerHTML|outerHTML|srcdoc)\b|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|setTimeout\(["'` + "`" + `]|javascript:`)
	for name, code := range assets(t, ".js") {
		for _, found := range forbidden.FindAllString(code, -1) {
			t.Errorf("%s has %s", name, found)
		}
	}
}

// TestAssetsHaveNoInlineScriptsOrStyles: the page's Content-Security-Policy forbids them.
func TestAssetsHaveNoInlineScriptsOrStyles(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]`)
	for name, html := range assets(t, ".html") {
		for _, found := range inline.FindAllString(html, -1) {
			t.Errorf("%s has %q, which the policy forbids", name, found)
		}
	}
	for name, code := range assets(t, ".js") {
		if regexp.MustCompile(`\bstyle: |setAttribute\("style"`).MatchString(code) {
			t.Errorf("%s writes a style attribute, which the policy forbids; element.style is allowed", name)
		}
	}
}

// TestAssetsLoadNothingFromOtherSites checks that the page works without access to the internet,
// and that no other site learns of it.
func TestAssetsLoadNothingFromOtherSites(t *testing.T) {
	address := regexp.MustCompile(`(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^"' )]*|@import`)
	for _, ending := range []string{".js", ".css", ".html", ".svg"} {
		for name, text := range assets(t, ending) {
			for _, found := range address.FindAllString(text, -1) {
				if found != "http://www.w3.org/2000/svg" {
					t.Errorf("%s names %s", name, found)
				}
			}
		}
	}
}

// TestAssetsExist checks that every file that an asset names exists, at a relative address.
func TestAssetsExist(t *testing.T) {
	exists := func(from, name string) {
		if _, err := os.Stat(filepath.Join("assets", name)); err != nil {
			t.Errorf("%s names %s, which does not exist", from, name)
		}
	}
	for from, code := range assets(t, ".js") {
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(code, -1) {
			exists(from, m[1])
		}
	}
	for from, html := range assets(t, ".html") {
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
			if name, ok := strings.CutPrefix(m[1], "assets/"); ok {
				exists(from, name)
			} else if strings.HasPrefix(m[1], "/") {
				t.Errorf("%s has the address %s, which works only if the page is mounted at the root", from, m[1])
			}
		}
	}
}

// TestThemesSetTheSameColors checks that both themes set each color, and that each used one is set.
func TestThemesSetTheSameColors(t *testing.T) {
	css := assets(t, ".css")["base.css"]
	colors := regexp.MustCompile(`(--[a-z0-9-]+): (?:#|rgb)`)
	light, dark, ok := strings.Cut(css, `:root[data-theme="dark"]`)
	if !ok {
		t.Fatal("no dark theme in base.css")
	}
	dark, _, _ = strings.Cut(dark, "}")
	for _, m := range colors.FindAllStringSubmatch(light, -1) {
		if !strings.Contains(dark, m[1]+": ") {
			t.Errorf("%s has no color in the dark theme", m[1])
		}
	}
	for name, text := range assets(t, ".css") {
		for _, m := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(css, m[1]+":") && !strings.Contains(text, m[1]+":") {
				t.Errorf("%s uses %s, which is not set", name, m[1])
			}
		}
	}
}
