// Package bench provides zklock bench: it measures servers, and compares lock recipes by what
// a release costs.
package bench
