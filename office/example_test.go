// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"context"
	"log"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
)

// An office shares its people with a fleet that its device has joined.
func ExampleOffice_Share() {
	ctx := context.Background()
	var g *gallery.Gallery // of the office
	device, err := fleet.Open("/var/lib/door/fleet", fleet.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	go device.Run(ctx, device.Dial)
	part, err := fleet.NewPart(device, g.Space().ID, func(s string) { log.Print(s) })
	if err != nil {
		log.Fatal(err)
	}
	w := office.New(g, office.Options{Fleet: part, Teach: true})
	defer w.Share(ctx)()
	w.Run(ctx, nil) // with its cameras
}
