// SPDX-License-Identifier: Apache-2.0

// Command visitors follows a camera or a film, keeps a picture of each stranger, and says over HTTP
// who is in a photograph.
//
//	go run ./examples/visitors alice.jpg bob.jpg recording.avi
//	curl --data-binary @party.jpg http://127.0.0.1:8080     # while it runs
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		last := len(os.Args) - 1
		err = run(context.Background(), l, os.Args[1:last], os.Args[last])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, l net.Listener, photographs []string, source string) (err error) {
	r, err := faceauth.New(faceauth.Options{Gallery: "visitors.db"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }() // Close keeps what was learned
	for _, file := range photographs {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		m, err := faceauth.Decode(data)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if _, err := r.EnrollImage(ctx, name, m); err != nil {
			return err
		}
	}
	server := http.Server{Handler: who(r)}
	go server.Serve(l)
	defer server.Shutdown(ctx)
	for f, err := range r.Watch(ctx, source) {
		if err != nil {
			return err
		}
		fmt.Println(f.At, f.Track, f.Name, f.Confirmed, f.Left)
		if f.Name == "" && !f.Left {
			file := fmt.Sprintf("stranger-%d.jpg", f.Track)
			if err := os.WriteFile(file, f.Picture, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// who answers a request, a photograph, with a line for each face in it. Requests come in many
// goroutines.
func who(r *faceauth.Recogniser) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 32<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m, err := faceauth.Decode(data)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		faces, err := r.WhoImage(q.Context(), m)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, f := range faces {
			fmt.Fprintln(w, f.Box, f.Name, f.Reason, f.Nearest, f.Rarity)
		}
	}
}
