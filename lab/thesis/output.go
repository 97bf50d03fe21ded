// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"encoding/csv"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// table writes a CSV file below --out.
func (o *options) table(name string, header []string, rows [][]string) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(o.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	if err := w.Write(header); err != nil {
		return err
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return f.Close()
}

// picture writes a PNG file below --out with panels in rows, each with the given width and height.
func (o *options) picture(name string, width, height vg.Length, panels [][]*plot.Plot) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(o.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := figure.PNG(f, width, height, panels); err != nil {
		return err
	}
	return f.Close()
}
