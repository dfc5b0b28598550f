package wal

// CloseActive closes the segment that a log writes to, behind its back.
func CloseActive(l *Log) error { return l.active.file.Close() }
