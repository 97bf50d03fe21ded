// SPDX-License-Identifier: Apache-2.0

// Command who says who is in a photograph: go run ./examples/who
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/faceauth/faceauth"
)

func main() {
	if err := who(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func who(ctx context.Context) (err error) {
	r, err := faceauth.New(faceauth.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Enroll(ctx, "alice", "alice.jpg"); err != nil {
		return err
	}
	faces, err := r.Who(ctx, "party.jpg")
	for _, f := range faces {
		fmt.Println(f.Box, f.Name, f.Reason, f.Rarity)
	}
	return err
}
