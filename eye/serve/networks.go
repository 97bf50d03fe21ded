// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/preprocess"
)

// Open opens the networks of a vision, for programs that run them in their own process. The caller
// closes both.
func Open(v eye.Vision) (facedet.Detector, preprocess.Extractor, error) {
	// A user waits for the first frame, so both are opened at once.
	var d facedet.Detector
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		d, failed = openDetector(v)
	}()
	e, err := openExtractor(v)
	<-done
	if err == nil && failed == nil {
		return d, e, nil
	}
	if err == nil {
		e.Close()
	}
	if failed == nil {
		d.Close()
	}
	return nil, nil, cmp.Or(err, failed)
}

func openExtractor(v eye.Vision) (preprocess.Extractor, error) {
	switch v.Features {
	case "pixels":
		return preprocess.Pixels, nil
	case "embedding":
		description, err := models.Of(models.Embedding, v.EmbeddingModel)
		if err != nil {
			return nil, err
		}
		network, err := preprocess.NewEmbedding(description, v.Models)
		switch {
		case err != nil:
			return nil, err
		case v.Infrared:
			return preprocess.Infrared(network), nil
		}
		return network, nil
	}
	return nil, fmt.Errorf("unknown features %q", v.Features)
}

func openDetector(v eye.Vision) (facedet.Detector, error) {
	switch v.Detector {
	case "network":
		boxes, err := models.Of(models.Detector, v.DetectorModel)
		if err != nil {
			return nil, err
		}
		network, err := facedet.NewNetwork(boxes, models.Default(models.Landmarks), v.Models)
		if err != nil {
			return nil, err
		}
		return network, nil
	case "haar":
		return facedet.Haar()
	}
	return nil, fmt.Errorf("unknown detector %q", v.Detector)
}
