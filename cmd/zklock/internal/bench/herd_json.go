package bench

// document is a run in JSON. Its names are a stable interface for programs.
type document struct {
	Servers string    `json:"servers"`
	Rows    []jsonRow `json:"rows"`
}

// jsonRow is a row in JSON. Times are in microseconds. An experiment without figures has
// zero releases and an error, and its other numbers are meaningless.
type jsonRow struct {
	Recipe     string  `json:"recipe"`
	About      string  `json:"about"`
	Kind       Kind    `json:"kind"`
	Edition    Edition `json:"edition"`
	Waiters    int     `json:"waiters"`
	Sessions   int     `json:"sessions"`
	Releases   int     `json:"releases"`
	PerRelease Figures `json:"per_release"`
	PerArrival Figures `json:"per_arrival"`
	Fewest     int64   `json:"notifications_min"`
	Most       int64   `json:"notifications_max"`
	Median     int64   `json:"latency_median_us"`
	Slowest    int64   `json:"latency_max_us"`
	Note       string  `json:"note,omitempty"`
	Error      string  `json:"error,omitempty"`
}

// View returns the JSON value of rows that were measured on the named servers. Times are in
// microseconds.
func View(servers string, rows []Row) any {
	doc := document{Servers: servers, Rows: []jsonRow{}}
	for i := range rows {
		doc.Rows = append(doc.Rows, rows[i].view())
	}
	return doc
}

// view returns the JSON value of the row.
func (r *Row) view() jsonRow {
	v := jsonRow{
		Recipe: r.Recipe.Name, About: r.Recipe.About, Kind: r.Recipe.Kind, Edition: r.Recipe.Edition,
		Waiters: r.Waiters, Sessions: r.Sessions, Releases: r.Releases,
		PerRelease: r.PerRelease(), PerArrival: r.PerArrival(), Fewest: r.Fewest, Most: r.Most,
		Median: r.Median().Microseconds(), Slowest: r.Slowest().Microseconds(), Note: r.Note,
	}
	if r.Err != nil {
		v.Error = r.Err.Error()
	}
	return v
}
