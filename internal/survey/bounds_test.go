package survey

// Bound makes the bounds of looks at one lock small enough for tests.
func (r *Reader) Bound(wide, strays int) { r.wide, r.strays = wide, strays }
