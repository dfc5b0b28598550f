// Package ui looks at the page of package zkui as people do: in a browser, headless
// Chromium as Debian has it, driven by its own protocol. The tests check what is
// on the page, never how it got there, and all of them also that the browser had
// nothing to complain of: no error, and nothing that the page's own
// Content-Security-Policy had to stop.
//
// Without Chromium they skip and say so; with ZKLOCK_REQUIRE_REAL=1 in the
// environment they fail. `make screenshots` makes the pictures in docs/screenshots
// by the same means.
package ui
