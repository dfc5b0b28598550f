// Package serve provides zklock serve and zklock ui: the embedded server with its
// configuration, log, and metrics, this user's local server, and the page.
package serve
