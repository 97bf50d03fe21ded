// SPDX-License-Identifier: Apache-2.0

// Command who says who is in a photograph: go run ./examples/who
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/faceauth/faceauth"
)

func main() {
	ctx := context.Background()
	r, err := faceauth.New(faceauth.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if err := r.Enroll(ctx, "alice", "alice.jpg"); err != nil {
		log.Fatal(err)
	}
	faces, err := r.Who(ctx, "party.jpg")
	for _, f := range faces {
		fmt.Println(f.Box, f.Name, f.Reason)
	}
	if err != nil {
		log.Fatal(err)
	}
}
