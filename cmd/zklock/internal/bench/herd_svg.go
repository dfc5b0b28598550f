package bench

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The dimensions of the picture in pixels.
const (
	pictureWidth = 1140
	margin       = 24
	titleHeight  = 76
	legendLine   = 20
	panelGap     = 76 // room for the labels of the vertical axis
	panelHeight  = 230
	axisHeight   = 56 // room below a panel
)

const pictureStyle = `text{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:13px;fill:#222}
.title{font-size:20px;font-weight:600}.kind{font-size:16px;font-weight:600}.name{font-weight:600}
.tick{font-size:12px;fill:#555}.grid{stroke:#ddd;stroke-width:1}.frame{fill:none;stroke:#888;stroke-width:1}
polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}`

// pen is the style of a recipe's lines.
type pen struct {
	color  string
	width  float64 // in pixels
	dashes string  // value of stroke-dasharray; empty means a solid line
}

// pens returns the pens of a kind's recipes. Overlapping lines stay visible: that of zklock
// is wide and drawn first, and that of the improved version is dashed.
func pens(recipes []Recipe) map[string]pen {
	found := make(map[string]pen)
	firsts := []pen{{"#e8824a", 5, ""}, {"#a03c00", 2, ""}}
	for _, r := range recipes {
		switch r.Edition {
		case Ours:
			found[r.Name] = pen{"#43b08c", 7, ""}
		case Improved:
			found[r.Name] = pen{"#0a4f8f", 2.5, "7 5"}
		default:
			found[r.Name] = firsts[0]
			if len(firsts) > 1 {
				firsts = firsts[1:]
			}
		}
	}
	return found
}

// picture is an SVG that is being built.
type picture struct {
	strings.Builder // its methods return no errors
	rows            []Row
}

// WriteSVG draws the rows: for mutexes and for read-write locks, the cost of a release by
// the number of waiters. All scales are logarithmic. caption says where the rows were
// measured.
func WriteSVG(w io.Writer, caption string, rows []Row) error {
	p, body := &picture{rows: rows}, &picture{rows: rows}
	y := float64(titleHeight)
	for _, kind := range []Kind{Mutex, ReadWrite} {
		y = body.block(kind, y)
	}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-labelledby="title">`+"\n",
		pictureWidth, y, pictureWidth, y)
	fmt.Fprintf(p, "<title id=\"title\">The herd effect</title>\n<style>%s</style>\n", pictureStyle)
	fmt.Fprintf(p, "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n", pictureWidth, y)
	p.text(margin, 34, "title", "start", "What one release of a lock costs while others wait for it")
	p.text(margin, 56, "tick", "start", caption)
	p.WriteString(body.String())
	p.WriteString("</svg>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// block draws the recipes of one kind at y, if there are any, and returns the y of the next
// block.
func (p *picture) block(kind Kind, y float64) float64 {
	var recipes []Recipe
	for _, r := range p.rows {
		if r.Recipe.Kind == kind && !slices.ContainsFunc(recipes, func(o Recipe) bool { return o.Name == r.Recipe.Name }) {
			recipes = append(recipes, r.Recipe)
		}
	}
	if len(recipes) == 0 {
		return y
	}
	kinds := map[Kind]string{Mutex: "Mutex", ReadWrite: "Read-write lock, every second one a reader"}
	p.text(margin, y+16, "kind", "start", kinds[kind])
	y += 26
	drawn := pens(recipes)
	for _, r := range recipes {
		pen := drawn[r.Name]
		fmt.Fprintf(p, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" %s/>\n", margin, y+9, margin+44, y+9, pen.attributes())
		p.text(margin+56, y+13, "name", "start", r.Name)
		p.text(margin+190, y+13, "", "start", r.About)
		y += legendLine
	}
	y += 30
	all := metrics()
	each := float64(pictureWidth-margin) / float64(len(all))
	for i, m := range all {
		p.panel(m, recipes, drawn, float64(i)*each+panelGap, float64(i+1)*each, y)
	}
	return y + panelHeight + axisHeight
}

// panel draws one metric of some recipes between two edges.
func (p *picture) panel(m metric, recipes []Recipe, drawn map[string]pen, left, right, top float64) {
	bottom := top + panelHeight
	x := widths(p.rows, left+14, right-14)
	y := heights(p.rows, m, bottom-12, top+8)
	p.text(left, top-10, "name", "start", m.title)
	for _, v := range y.decades() {
		fmt.Fprintf(p, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", left, y.at(v), right, y.at(v))
		p.text(left-6, y.at(v)+4, "tick", "end", m.tick(v))
	}
	for _, n := range p.waiters() {
		p.text(x.at(float64(n)), bottom+17, "tick", "middle", fmt.Sprint(n))
	}
	p.text((left+right)/2, bottom+36, "tick", "middle", "waiters")
	fmt.Fprintf(p, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", left, top, right-left, panelHeight)
	// Later lines are drawn on top: thin and dashed lines over wide ones.
	for _, edition := range []Edition{Ours, First, Improved} {
		for _, r := range recipes {
			if r.Edition == edition {
				p.line(m, r, drawn[r.Name], x, y)
			}
		}
	}
}

// line draws one metric of one recipe: a line, and a dot for each experiment.
func (p *picture) line(m metric, recipe Recipe, pen pen, x, y scale) {
	var points []string
	var dots strings.Builder
	for i := range p.rows {
		r := &p.rows[i]
		if r.Recipe.Name != recipe.Name || r.Releases == 0 {
			continue
		}
		px, py := x.at(float64(r.Waiters)), y.at(m.of(r))
		points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
		fmt.Fprintf(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"><title>%s, %d waiters: %s</title></circle>\n",
			px, py, max(3, pen.width/2+1), pen.color, escape(recipe.Name), r.Waiters, escape(m.label(m.of(r))))
	}
	fmt.Fprintf(p, "<g id=\"%s-%s\"><title>%s</title>\n<polyline points=\"%s\" %s/>\n%s</g>\n",
		m.id, escape(recipe.Name), escape(recipe.Name), strings.Join(points, " "), pen.attributes(), dots.String())
}

// attributes returns the pen as SVG attributes.
func (n pen) attributes() string {
	s := fmt.Sprintf("stroke=\"%s\" stroke-width=\"%g\"", n.color, n.width)
	if n.dashes != "" {
		s += fmt.Sprintf(" stroke-dasharray=\"%s\"", n.dashes)
	}
	return s
}

// waiters returns the numbers of waiters of the rows, which are the ticks of the horizontal
// axis.
func (p *picture) waiters() (all []int) {
	for _, r := range p.rows {
		if !slices.Contains(all, r.Waiters) {
			all = append(all, r.Waiters)
		}
	}
	return all
}

// text writes a text. The class may be empty.
func (p *picture) text(x, y float64, class, anchor, s string) {
	fmt.Fprintf(p, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, escape(s))
}

// escape escapes a text for XML.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder returns no errors
	return b.String()
}
