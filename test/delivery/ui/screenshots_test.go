package ui

import (
	"context"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// picturesTo is where the pictures go, for `make screenshots`.
var picturesTo = flag.String("screenshots", "", "directory for pictures of the page; empty makes them and keeps none")

// The locks whose pages are in the pictures.
const (
	busiest = "/zklock/db/migrations"
	slots   = "/zklock/crawl/slots"
)

// anHour lets a fleet work for an hour, which in a bubble of virtual time takes some
// seconds, and returns what the page's handler answers at its end.
func anHour(t *testing.T) *Recording {
	rec := NewRecording()
	synctest.Test(t, func(t *testing.T) {
		// A bubble's time begins at midnight: the pictures are of an hour at work.
		time.Sleep(9*time.Hour + 41*time.Minute)
		srv := zktest.Start(t)
		page, err := zkui.New(srv.Dial(t), &zkui.Options{Title: "zk1,zk2,zk3:2181", Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		f := &fleet{srv: srv}
		ctx, cancel := context.WithCancel(t.Context())
		f.live(ctx, t)
		time.Sleep(time.Hour)
		f.cross(ctx, t)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		for _, address := range assetsOf(t) {
			rec.Take(t, page, address)
		}
		for _, address := range []string{"", "?format=json", "status?format=json", "history?format=json"} {
			rec.Take(t, page, address)
		}
		var answer struct {
			Sessions []struct{ ID string }
		}
		if err := json.Unmarshal(rec.Take(t, page, "sessions?format=json").Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		rec.TakeStream(t, page, "events?history=1")
		rec.TakeStream(t, page, "events?path="+busiest+"&entries=200")
		rec.TakeStream(t, page, "events?path="+slots+"&entries=200")
		cancel()
		f.all.Wait()
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	})
	return rec
}

// assetsOf are the addresses of what the page is made of.
func assetsOf(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../zkui/assets/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assets: %v", err)
	}
	for i, f := range files {
		files[i] = "assets/" + filepath.Base(f)
	}
	return files
}

// TestScreenshots looks at an hour of a fleet in all pages, both colours, and on a
// phone, and makes pictures of them.
func TestScreenshots(t *testing.T) {
	dir := *picturesTo
	if dir == "" {
		dir = t.TempDir()
	}
	needBrowser(t)
	srv := httptest.NewServer(anHour(t))
	t.Cleanup(srv.Close) // after the browser, which has streams open
	b := StartBrowser(t)
	light, dark := []string{"light"}, []string{"dark"}
	both := append(light, dark...)
	for _, shot := range []struct {
		name, address, ready string
		width, height        int64
		colours              []string
	}{
		{"list", "", `document.querySelectorAll(".locks .row").length > 8 && document.querySelector(".deadlock .ring")`, 1360, 860, both},
		{"lock", "lock?path=" + busiest, `document.querySelectorAll(".stop").length > 1 && document.querySelector("rect.grants")`, 1360, 960, both},
		{"semaphore", "lock?path=" + slots, `document.querySelectorAll(".gauge .full").length > 0`, 1360, 860, light},
		{"sessions", "sessions", `document.querySelectorAll(".sessions .row").length > 8 && document.querySelector(".deadlock .ring")`, 1360, 700, both},
		{"history", "history", `document.querySelectorAll("rect.grants").length > 20`, 1360, 790, both},
		{"list-phone", "", `document.querySelectorAll(".locks .row").length > 4 && document.querySelector(".deadlock .ring")`, 390, 844, light},
		{"lock-phone", "lock?path=" + busiest, `document.querySelectorAll(".stop").length > 1`, 390, 844, dark},
	} {
		for _, colours := range shot.colours {
			b.Size(shot.width, shot.height)
			b.Dark(colours == "dark")
			b.Open(srv.URL + "/" + shot.address)
			b.Until(shot.ready)
			b.Shows("#live", "live")
			b.Picture(filepath.Join(dir, shot.name+"-"+colours+".png"))
		}
	}
}
