package tree

// shares counts what each address has of something that there is only so much of for
// all. An address may have as many as are still free, so that alone it takes half; the
// last part of all is for those that have few. While there is plenty, no address is
// held to anything.
type shares map[Share]int

// Share stands for an address. Zero is a peer that shares with nobody.
type Share uint64

const (
	// reservedPart is the part of all that is for those with few.
	reservedPart = 8
	// fewPart is the part of all that is few.
	fewPart = 8192
)

// add counts n for an address.
func (s shares) add(addr Share, n int) {
	if addr == 0 {
		return
	}
	if s[addr] += n; s[addr] == 0 {
		delete(s, addr)
	}
}

// allow reports whether an address may have one more where free of most are left.
func (s shares) allow(addr Share, free, most int) bool {
	if addr == 0 || s[addr] < most/fewPart {
		return free > 0
	}
	return s[addr] < free-most/reservedPart
}
