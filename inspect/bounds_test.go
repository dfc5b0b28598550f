package inspect

// Bound makes the bounds of looks at one lock small enough for tests.
func (r *Reader) Bound(wide, strays int) { r.maxChildren, r.maxStrayNodes = wide, strays }
