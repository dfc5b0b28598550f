// Package lockload compares lock libraries with each other, on the servers that
// they are for, and this project's on several.
package lockload
