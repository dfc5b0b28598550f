// Package lockload compares lock libraries on the servers that they support, and zklock on
// several servers.
package lockload
