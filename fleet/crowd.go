// SPDX-License-Identifier: Apache-2.0

package fleet

// A device that lies can label thousands of people with nearly the same face. Each two of these faces would be an edge
// in the graph of every gallery, and the edges would fill the memory. So a gallery takes further faces of a device only
// while its faces are near few faces of other people. Honest faces of other people are rarely near.
const (
	crowdFree = 4096 // faces of others that may be near all faces of a device
	crowdEach = 16   // and for each face
)

// crowd counts the faces in a gallery that one device has given, and the faces of other people that are near them.
type crowd struct {
	faces, near int
}

// crowd counts a face of a device.
func (x *reconciling) crowd(device string, label int64) {
	c := x.met.crowds[device]
	if c == nil {
		c = new(crowd)
		x.met.crowds[device] = c
	}
	c.faces++
	c.near += x.g.Learner().Crowd(label)
}

// gather counts the faces of the fleet that the gallery has.
func (x *reconciling) gather() {
	clear(x.met.crowds)
	if len(x.people) == 0 {
		return
	}
	x.loadAll()
	by := make(map[FaceID]string)
	for _, p := range x.all {
		for _, list := range [][]PersonFace{p.Faces, p.Denied} {
			for _, f := range list {
				by[f.ID] = f.device
			}
		}
	}
	for _, p := range x.people {
		for _, labels := range []map[FaceID]int64{p.faces, p.denied} {
			for id, label := range labels {
				if device := by[id]; device != "" {
					x.crowd(device, label)
				}
			}
		}
	}
}

// takes reports whether the gallery takes further faces of a device.
func (x *reconciling) takes(device string) bool {
	c := x.met.crowds[device]
	if c == nil || c.near <= crowdFree+crowdEach*c.faces {
		return true
	}
	if !x.told[device] {
		x.told[device] = true
		m, _ := x.d.members.Device(device)
		x.refuse("further faces from %s are not taken: its faces are near too many faces of other people; if it lies, "+
			"run faceauth fleet revoke", m.Name)
	}
	return false
}
