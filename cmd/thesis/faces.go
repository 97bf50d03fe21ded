package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// embeddedHeads returns the faces of vidtimit_rot as embeddings, and their space.
func (o *options) embeddedHeads(ctx context.Context) (face.Space, []evaluate.Identity, []string, error) {
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return face.Space{}, nil, nil, err
	}
	defer e.Close()
	ids, names, err := o.turningHeads(ctx, e)
	return e.Space(), ids, names, err
}

// turningHeads returns the faces of vidtimit_rot.
func (o *options) turningHeads(ctx context.Context, e preprocess.Extractor) (ids []evaluate.Identity, names []string, err error) {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		src, err := facedet.Open(ctx, filepath.Join(o.data, "faces", "vidtimit_rot", name), facedet.Options{})
		if err != nil {
			return nil, nil, err
		}
		id, err := evaluate.Read(ctx, name, pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate}), preprocess.EnrolGate.Passes)
		src.Close()
		if err != nil {
			return nil, nil, err
		}
		ids, names = append(ids, id), append(names, name)
	}
	return ids, names, nil
}
