module github.com/zklock/zklock/test

go 1.26

require github.com/zklock/zklock v0.0.0
