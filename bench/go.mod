module github.com/zklock/zklock/bench

go 1.26.0

require github.com/zklock/zklock v0.0.0
