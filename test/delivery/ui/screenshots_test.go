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

var screenshotsDir = flag.String("screenshots", "", "directory for the screenshots; empty discards them")

// The locks whose pages are in the screenshots.
const (
	busiest = "/zklock/db/migrations"
	slots   = "/zklock/crawl/slots"
)

// recordHour runs the workload for an hour of virtual time, and records the responses of the
// page's handler.
func recordHour(t *testing.T) *Recording {
	rec := NewRecording()
	synctest.Test(t, func(t *testing.T) {
		// A bubble's time begins at midnight.
		time.Sleep(9*time.Hour + 41*time.Minute)
		srv := zktest.Start(t)
		page, err := zkui.New(srv.Dial(t), &zkui.Options{Title: "zk1,zk2,zk3:2181", Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		w := &workload{srv: srv}
		ctx, cancel := context.WithCancel(t.Context())
		w.start(ctx, t)
		time.Sleep(time.Hour)
		w.startDeadlock(ctx, t)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		for _, address := range assets(t) {
			rec.Record(t, page, address)
		}
		for _, address := range []string{"", "?format=json", "status?format=json", "history?format=json"} {
			rec.Record(t, page, address)
		}
		var answer struct {
			Sessions []struct{ ID string }
		}
		if err := json.Unmarshal(rec.Record(t, page, "sessions?format=json").Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		rec.RecordStream(t, page, "events?history=1")
		rec.RecordStream(t, page, "events?path="+busiest+"&entries=200")
		rec.RecordStream(t, page, "events?path="+slots+"&entries=200")
		cancel()
		w.processes.Wait()
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	})
	return rec
}

// assets returns the addresses of the page's assets.
func assets(t *testing.T) []string {
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

// TestScreenshots writes screenshots of the views, in both color schemes and on a phone.
func TestScreenshots(t *testing.T) {
	dir := *screenshotsDir
	if dir == "" {
		dir = t.TempDir()
	}
	needBrowser(t)
	srv := httptest.NewServer(recordHour(t))
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
			b.Screenshot(filepath.Join(dir, shot.name+"-"+colours+".png"))
		}
	}
}
