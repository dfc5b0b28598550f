package wal

// CloseActive closes the segment that a log writes to, without its knowledge.
func CloseActive(l *Log) error { return l.active.file.Close() }
