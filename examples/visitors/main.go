// SPDX-License-Identifier: Apache-2.0

// Command visitors follows a camera or a film, keeps a picture of each stranger, and enrols and
// recognises people in photographs that come over HTTP.
//
//	go run ./examples/visitors recording.avi
//	curl -T alice.jpg http://127.0.0.1:8080/alice               # this is alice
//	curl --data-binary @party.jpg http://127.0.0.1:8080         # who is this?
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

	"github.com/faceauth/faceauth"
)

func main() {
	if err := run(context.Background(), "127.0.0.1:8080", os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address, source string) (err error) {
	r, err := faceauth.New(faceauth.Options{Gallery: "visitors.db"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }() // Close keeps what was learned
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go http.Serve(l, photographs(r))
	return follow(ctx, r, source)
}

// follow says who comes and goes, and keeps a picture of each stranger.
func follow(ctx context.Context, r *faceauth.Recogniser, source string) error {
	for f, err := range r.Watch(ctx, source) {
		if err == nil && f.Name == "" && !f.Left {
			err = os.WriteFile(fmt.Sprintf("stranger-%d.jpg", f.Track), f.Picture, 0o600)
		}
		if err != nil {
			return err
		}
		fmt.Println(f.At, f)
	}
	return nil
}

// photographs enrols the person in a photograph that is put, and says who is in others. Requests
// come in many goroutines.
func photographs(r *faceauth.Recogniser) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		file, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 32<<20))
		var answer any
		if err == nil && q.Method == http.MethodPut {
			answer, err = r.EnrollBytes(q.Context(), q.URL.Path[1:], file)
		} else if err == nil {
			answer, err = r.WhoBytes(q.Context(), file)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%+v\n", answer)
	}
}
