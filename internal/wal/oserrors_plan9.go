package wal

// Advice returns "", because errors are texts on Plan 9.
func Advice(error) string { return "" }

// isFull returns false for the same reason.
func isFull(error) bool { return false }

// OutOfDescriptors returns false for the same reason.
func OutOfDescriptors(error) bool { return false }

// exceedsFileSize returns false for the same reason.
func exceedsFileSize(error) bool { return false }
