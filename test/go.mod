module github.com/zklock/zklock/test

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-zookeeper/zk v1.0.4
	github.com/zklock/zklock v0.0.0
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)
