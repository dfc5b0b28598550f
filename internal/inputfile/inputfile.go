// Package inputfile reads files that a user names. It does not wait for the other end of
// a named pipe, does not read devices, and limits the size.
package inputfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/zklock/zklock/internal/ownership"
)

// Read returns the content of a file of at most limit bytes, and what describes the file.
// It refuses what is not a regular file. One exception: a descriptor of this process, such
// as /dev/stdin or what <(command) stands for in a shell, can also be a pipe or a terminal.
func Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	// Before opening: to open a device can change it.
	if info, err := os.Stat(name); err == nil {
		if err := check(name, info); err != nil {
			return nil, nil, err
		}
	}
	file, err := os.OpenFile(name, os.O_RDONLY|ownership.NoWait, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = check(name, info)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(text)) > limit {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return text, info, nil
}

// check refuses what is not a regular file, nor a descriptor that has content.
func check(name string, info fs.FileInfo) error {
	kind := "a special file"
	switch t := info.Mode().Type(); {
	case t == 0:
		return nil
	case t == fs.ModeDir:
		return fmt.Errorf("%s is a directory", name)
	case descriptor(name):
		return nil
	case t == fs.ModeNamedPipe:
		kind = "a named pipe"
	case t&fs.ModeDevice != 0:
		kind = "a device"
	case t == fs.ModeSocket:
		kind = "a socket"
	}
	return fmt.Errorf("%s is %s, not a regular file: give a file, /dev/stdin, or the <(command) of a shell", name, kind)
}

// descriptor reports whether the name means an open file of this process.
func descriptor(name string) bool {
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if digits, ok := strings.CutPrefix(name, dir); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return name == "/dev/stdin"
}
