// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// format describes the file of a dataset.
type format struct {
	files  []string // below tables, gzipped or not
	header int      // lines before the first row
	comma  string   // between fields; empty for white space
	label  int      // field to predict; negative counts from the end
	fields int
	values func(field int, s string) ([]float32, error) // converts a field; nil for one number
}

var formats = map[string]format{
	"letter": {files: []string{"letter/letter-recognition.data"}, comma: ",", label: 0, fields: 17},
	"optdigits": {files: []string{"optdigits/optdigits.tra", "optdigits/optdigits.tes"}, comma: ",",
		label: 64, fields: 65},
	"segmentation": {files: []string{"segmentation/segmentation.data",
		"segmentation/segmentation.test"}, header: 5,
		comma: ",", label: 0, fields: 20},
	"car":    {files: []string{"car/car.data"}, comma: ",", label: 6, fields: 7, values: grade},
	"coil2":  {files: []string{"coil2/coil2.csv.gz"}, comma: ",", label: 241, fields: 242},
	"digit1": {files: []string{"digit1/digit1.csv.gz"}, comma: ",", label: 241, fields: 242},
	"usps":   {files: []string{"usps/usps.csv.gz"}, comma: ",", label: 241, fields: 242},
	"secstr": {files: []string{"secstr/secstr.csv.gz"}, comma: ",", label: 15, fields: 16,
		values: aminoAcid},
	"wine": {files: []string{"winequality/winequality-red.csv"}, header: 1, comma: ";",
		label: 11, fields: 12},
	"housing":  {files: []string{"housing/housing.data"}, label: 13, fields: 14},
	"auto-mpg": {files: []string{"auto-mpg/auto-mpg.data"}, label: 0, fields: 8},
}

// row is one line of a table.
type row struct {
	x     []float32
	label string
}

// rows returns the rows of a dataset. It leaves out rows with a missing value, '?'.
func (o *options) rows(dataset string) (all []row, err error) {
	f, ok := formats[dataset]
	if !ok {
		return nil, fmt.Errorf("there is no dataset %q", dataset)
	}
	for _, name := range f.files {
		text, err := readText(filepath.Join(o.data, "tables", name))
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(text, "\n") {
			// in auto-mpg the car's name follows a tab
			line, _, _ = strings.Cut(strings.TrimSpace(line), "\t")
			if i < f.header || line == "" {
				continue
			}
			r, err := f.parse(line)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
			}
			if r.x != nil {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func (f format) parse(line string) (r row, err error) {
	fields := strings.Fields(line)
	if f.comma != "" {
		fields = strings.Split(line, f.comma)
	}
	if len(fields) != f.fields {
		return r, fmt.Errorf("%d fields, and not %d", len(fields), f.fields)
	}
	if slices.Contains(fields, "?") {
		return row{}, nil
	}
	values := f.values
	if values == nil {
		values = func(_ int, s string) ([]float32, error) {
			x, err := strconv.ParseFloat(s, 32)
			return []float32{float32(x)}, err
		}
	}
	for i, s := range fields {
		if i == f.label {
			r.label = s
			continue
		}
		x, err := values(i, s)
		if err != nil {
			return r, err
		}
		r.x = append(r.x, x...)
	}
	return r, nil
}

func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(text), nil
}

// grade converts the words of the Car dataset to ranks.
func grade(field int, s string) ([]float32, error) {
	ranks := [][]string{
		{"low", "med", "high", "vhigh"}, {"low", "med", "high", "vhigh"}, {"2", "3", "4", "5more"},
		{"2", "4", "more"}, {"small", "med", "big"}, {"low", "med", "high"},
	}[field]
	i := slices.Index(ranks, s)
	if i < 0 {
		return nil, fmt.Errorf("field %d is %q", field+1, s)
	}
	return []float32{float32(i)}, nil
}

// aminoAcid converts one of the 21 symbols of SecStr to 21 indicators.
func aminoAcid(_ int, s string) ([]float32, error) {
	i, err := strconv.Atoi(s)
	if err != nil || i < 0 || i > 20 {
		return nil, fmt.Errorf("symbol %q", s)
	}
	x := make([]float32, 21)
	x[i] = 1
	return x, nil
}

// byLabel returns the points of each label.
func byLabel(all []row) map[string][][]float32 {
	m := make(map[string][][]float32)
	for _, r := range all {
		m[r.label] = append(m[r.label], r.x)
	}
	return m
}

// deviation returns the mean standard deviation of the features.
func deviation(x [][]float32) float64 {
	var sum float64
	column := make([]float64, len(x))
	for q := range x[0] {
		for i := range x {
			column[i] = float64(x[i][q])
		}
		sum += stat.StdDev(column, nil) / float64(len(x[0]))
	}
	return sum
}

// standardise gives each feature of x a mean of 0 and a standard deviation of 1, in place. A
// constant feature becomes 0.
func standardise(x [][]float32) {
	column := make([]float64, len(x))
	for q := range x[0] {
		for i := range x {
			column[i] = float64(x[i][q])
		}
		mean, spread := stat.MeanStdDev(column, nil)
		for i := range x {
			x[i][q] = 0
			if spread > 0 && !math.IsNaN(spread) {
				x[i][q] = float32((column[i] - mean) / spread)
			}
		}
	}
}
