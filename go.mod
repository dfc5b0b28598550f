module github.com/zklock/zklock

go 1.26
