module github.com/zklock/zklock/test

go 1.26
