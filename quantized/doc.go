// Package quantized keeps a similarity graph of at most k vertices over a stream of points that has
// no end, and solves for the harmonic function on it.
//
// [New] makes an empty [Graph]; [Graph.Label] adds a labelled point; [Graph.Place] puts a new point
// into the graph for trial, [Graph.Solve] brings the harmonic solution up to date,
// [Graph.ValuesTo] reads it at the point, and [Graph.Keep] or [Graph.Drop] ends the trial.
//
// Where all points are there at once, [Offline.Joint] finds centroids for them instead (elastic-joint), and [KMeans] and
// [ElasticNet] are its peers.
//
// It is the incremental k-centers algorithm and the online quantized harmonic solution of M. Valko,
// Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised Learning,
// 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs"; Charikar et al. 1997 for
// the doubling algorithm that it modifies). A vertex is a centroid: one of the points themselves,
// with the number of points that it stands for, its multiplicity.
//
// # Where the text is open
//
// The printed algorithm names no first radius R, and one multiplication of R may not shrink the
// set. Here R is 0 until the set first overflows; it then becomes the smallest positive distance
// between two vertices that are not both labelled, and the set is repartitioned for R·m, R·m², …
// until at most k vertices are left.
//
// Labelled vertices are never merged, moved or evicted and have multiplicity 1, unless
// [Config].Absorb lets them take in the points closer than R. A repartition looks at the labelled
// vertices first, then at the others by descending multiplicity, then by age; a vertex that is not
// kept goes to the nearest one that is.
//
// The guarantee is that every point lies within R·m/(m-1) of its centroid ([Graph.Bound]).
//
// An edge is at most [Config].Reach long, whatever the kernel. The thesis bounds its weight alone.
//
// # Time and memory
//
// A step takes the distances of one point to at most k+1 vertices, a float32 matrix-vector product; only
// those that could be an edge are then measured in float64. The weights of the edges are the distances
// just taken, and a repartition works on stored ones. The solution is found by conjugate gradients that
// start from the last one, on the part of the graph that the point can reach without crossing a
// labelled vertex; [Graph.Solve] says when a direct solution had to do. All storage is taken at the start,
// O(k·Dim + k²), and a step takes none, but for one that repartitions.
//
// # Ageing
//
// With [Config].HalfLife the multiplicity of what was learned decays, and vertices that have faded are
// evicted where no value depends on them ([Graph.Age]). It is one answer to the thesis's open question of
// concept drift.
//
// # Caveats
//
// A Graph is not safe for concurrent use. When R exceeds the length of the longest edge, the graph
// falls apart into single vertices: k is too small for the stream. [Graph.Shattered] tells.
package quantized
