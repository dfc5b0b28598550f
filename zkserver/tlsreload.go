package zkserver

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"maps"
	"os"
	"sync/atomic"
	"time"
)

// tlsReloader keeps a configuration up to date with its files.
type tlsReloader struct {
	files   TLSFiles
	current atomic.Pointer[tls.Config] // the last good one
	// busy is set by the goroutine that looks at the files, and guards what
	// follows. Others do not wait for it: the configuration that is there
	// will do for them.
	busy    atomic.Bool
	seen    []fileState       // when content was read
	content map[string][]byte // nil if it could not be read
	failure string            // why content is not in use; empty if it is
}

// fileState is what tells, without reading a file, that it is another.
type fileState struct {
	info os.FileInfo // nil if the file could not be looked at
	// settled is false for a file that was written so shortly before it was
	// read that a further write may show the same time.
	settled bool
}

// unsettled is how long after a write a file is read again at each look. File
// systems keep times in steps of up to two seconds.
const unsettled = 2 * time.Second

// config is tls.Config's GetConfigForClient.
func (r *tlsReloader) config(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if w := watcherOf(hello); w.used != nil {
		*w.used = r
	}
	if r.busy.CompareAndSwap(false, true) {
		if r.changed() {
			r.reload(watcherOf(hello))
		}
		r.busy.Store(false)
	}
	return r.current.Load(), nil
}

// load reads the files for the first time.
func (r *tlsReloader) load() error {
	c, err := r.read()
	if err != nil {
		return err
	}
	r.current.Store(c)
	return nil
}

// changed reports whether the files may have changed since they were read.
// os.Stat follows links: an exchanged link shows as another file.
func (r *tlsReloader) changed() bool {
	for i, name := range r.files.names() {
		old := r.seen[i]
		info, err := os.Stat(name)
		switch {
		case err != nil || old.info == nil:
			// What cannot be looked at is read, for the reason why.
			return true
		case !old.settled, !os.SameFile(old.info, info), info.Size() != old.info.Size(), !info.ModTime().Equal(old.info.ModTime()):
			return true
		}
	}
	return false
}

// read reads the files and notes their state as it was before.
func (r *tlsReloader) read() (*tls.Config, error) {
	names := r.files.names()
	r.seen, r.content = make([]fileState, len(names)), nil
	content := make(map[string][]byte)
	for i, name := range names {
		if info, err := os.Stat(name); err == nil {
			r.seen[i] = fileState{info: info, settled: time.Since(info.ModTime()) > unsettled}
		}
		b, err := readPEM(name)
		if err != nil {
			return nil, err
		}
		content[name] = b
	}
	r.content = content
	return r.files.build(content)
}

// reload takes over what the files hold now, if it is another content and a
// good one.
func (r *tlsReloader) reload(w tlsWatcher) {
	before := r.content
	c, err := r.read()
	same := before != nil && maps.EqualFunc(before, r.content, bytes.Equal)
	switch {
	case err != nil && same, err != nil && err.Error() == r.failure:
		// Told already.
	case err != nil:
		r.failure = err.Error()
		w.counts.tlsReloadFailures.Add(1)
		w.log.Warn("changed TLS files are not used, those from before stay in use; if this stays, mend them", "error", err)
	case same && r.failure == "":
		// Written anew with what it held.
	default:
		r.failure = ""
		r.current.Store(c)
		w.counts.tlsReloads.Add(1)
		w.log.Info("TLS files reloaded", "certificate", r.files.Cert)
		if w.recheck != nil && r.files.CutClients {
			w.recheck(r)
		}
	}
}

// tlsWatcher is who is told what becomes of the files.
type tlsWatcher struct {
	log    *slog.Logger
	counts *counters
	// used, unless it is nil, is set to the reloader of the handshake, and recheck called
	// when the files have changed.
	used    **tlsReloader
	recheck func(*tlsReloader)
}

// tlsWatcherKey is the key of the tlsWatcher in the context of a handshake: a
// configuration is made without a server, and may be used by several.
type tlsWatcherKey struct{}

// watcherOf returns the server whose handshake this is, or one that keeps all
// to itself for a handshake of anybody else's.
func watcherOf(hello *tls.ClientHelloInfo) tlsWatcher {
	if w, ok := hello.Context().Value(tlsWatcherKey{}).(tlsWatcher); ok {
		return w
	}
	return tlsWatcher{log: slog.Default(), counts: &counters{}}
}
