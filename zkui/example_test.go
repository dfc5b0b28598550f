package zkui_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// A program serves the page below a path of its own server.
func ExampleNew() {
	srv, err := zktest.New(zktest.Volatile) // instead of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := zk.Dial(context.Background(), srv.Servers(), &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	page, err := zkui.New(client, &zkui.Options{Prefix: "/apps/billing", Hosts: []string{"billing.example.org"}})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", page))

	for _, host := range []string{"billing.example.org", "elsewhere.example"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host+"/locks/status?format=json", nil))
		fmt.Println(host, w.Code, w.Header().Get("Content-Type"))
	}
	// Output:
	// billing.example.org 200 application/json; charset=utf-8
	// elsewhere.example 400 application/json; charset=utf-8
}
