// SPDX-License-Identifier: Apache-2.0

package models

// yunet is the name of the detector of the [Catalogue] that is used where it is installed.
const yunet = "yunet"

// Catalogue returns the networks that can be installed by name: the builtin ones, and others that
// are not needed. The embeddings among these were not measured here: [Description.Tuned] says so.
func Catalogue() []Description {
	half := [3]float64{127.5, 127.5, 127.5}
	outputs := make([]string, 0, 9)
	for _, of := range []string{"cls", "obj", "bbox"} {
		for _, side := range []string{"_8", "_16", "_32"} {
			outputs = append(outputs, of+side)
		}
	}
	return append(Builtin(), Description{
		Name: yunet, Kind: Detector, File: "face_detection_yunet_2026may.onnx", Licence: "MIT",
		Source:  "OpenCV's zoo, May 2026",
		SHA256:  "ebafce4e3c118d6554634be5c27ab333b4c047a9a8c3faf1d7cf93101c22f0f0",
		Input:   Input{Width: 1280, Height: 1280, Scale: 1, Colour: "bgr", Step: 32},
		Outputs: outputs, Layout: yunet,
		// lab/NOTES.md says on which pictures they were chosen and checked
		Threshold: .6, NMS: .3, Least: 24, Sure: .7,
	}, Description{
		Name: "sface", Kind: Embedding, File: "face_recognition_sface_2021dec.onnx",
		Licence: "Apache-2.0", Source: "OpenCV's zoo, December 2021",
		SHA256: "0ba9fbfa01b5270c96627c4ef784da859931e02f04419c829e83484087c34e79",
		Input:  Input{Width: 112, Height: 112, Scale: 1, Colour: "rgb"}, Dim: 128,
	}, Description{
		Name: "auraface", Kind: Embedding, File: "glintr100.onnx", Licence: "Apache-2.0",
		Source: "AuraFace-v1 of fal",
		SHA256: "a7933ea5330113b01c9b60351d8f4c33003f145d8470ac5f0e52ee2effe25c60",
		Input:  Input{Width: 112, Height: 112, Scale: 1 / 127.5, Mean: half, Colour: "rgb"},
		Dim:    512,
	})
}

// Best returns the detector that is used if none is named: YuNet if it is installed in dir, and the
// builtin one otherwise.
func Best(dir string) Description {
	best, _ := Of(Detector, yunet)
	if best.Missing(dir) == nil {
		return best
	}
	return Default(Detector)
}

// Present returns the builtin networks, and those of the [Catalogue] whose files are in dir.
func Present(dir string) []Description {
	present := Builtin()
	for _, d := range Catalogue()[len(present):] {
		if d.Missing(dir) == nil {
			present = append(present, d)
		}
	}
	return present
}
