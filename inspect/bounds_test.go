package inspect

// Bound lowers the limits of children and strays of one lock.
func (r *Reader) Bound(wide, strays int) { r.maxChildren, r.maxStrayNodes = wide, strays }
