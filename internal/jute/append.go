package jute

import "encoding/binary"

// null is the length or count that encodes Java's null.
const null = -1

// AppendBool appends v as one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt32 appends v as four bytes, most significant first.
func AppendInt32(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

// AppendInt64 appends v as eight bytes, most significant first.
func AppendInt64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

// AppendBuffer appends the length of v, then v. A nil v has the length -1, Java's
// null, and an empty v the length 0. The two stay different, because ZooKeeper
// distinguishes a znode without data from a znode with empty data.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt32(b, null)
	}
	b = AppendInt32(b, int32(len(v)))
	return append(b, v...)
}

// AppendString appends the length of v, then its bytes. There is no null string. A
// field in which Java may send null is read and written as a buffer.
func AppendString(b []byte, v string) []byte {
	b = AppendInt32(b, int32(len(v)))
	return append(b, v...)
}

// AppendStrings appends the count of v, then its strings. A nil v has the count -1,
// Java's null, and an empty v the count 0.
func AppendStrings(b []byte, v []string) []byte {
	b = AppendVectorLen(b, len(v), v == nil)
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// AppendVectorLen appends the count n of a vector, or -1 if isNull. The caller
// appends the elements.
func AppendVectorLen(b []byte, n int, isNull bool) []byte {
	if isNull {
		return AppendInt32(b, null)
	}
	return AppendInt32(b, int32(n))
}
