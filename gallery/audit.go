package gallery

import (
	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

// AuditWeights returns the graph on which labels are audited.
func AuditWeights(d mat.Symmetric, k graph.Kernel, reach float64) *mat.SymDense {
	n := d.SymmetricDim()
	w := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			if x := d.At(i, j); reach == 0 || x <= reach {
				w.SetSym(i, j, k.Weight(x))
			}
		}
	}
	return w
}
