// SPDX-License-Identifier: Apache-2.0

// Package quantized keeps a similarity graph of labelled points, and of at most k centroids of a stream of other points
// that has no end, and solves for the harmonic function on it.
//
// [New] makes an empty [Graph] and [Graph.Label] adds a labelled point. [Graph.Look] tries a point on the graph,
// [Trial.Solve] gives the harmonic solution there, and nothing has changed. [Graph.Place] tries a point that
// [Candidate.Keep] may keep.
//
// Where all points are there at once, [Offline.Joint] finds centroids for them instead (elastic-joint), and [KMeans]
// and [ElasticNet] are its peers.
//
// It is the incremental k-centers algorithm and the online quantized harmonic solution of M. Valko,
// Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised Learning,
// 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs"; Charikar et al. 1997 for
// the doubling algorithm that it modifies). A vertex is a centroid: one of the points themselves,
// with the number of points that it stands for, its multiplicity.
//
// # Where the text is open
//
// The printed algorithm names no first radius R, and one multiplication of R may not shrink the set. Here R is 0 until
// there are more than k learned vertices for the first time; it then becomes the smallest positive distance between two
// vertices that are not both labelled, and the set is repartitioned for R·m, R·m², … until at most k learned vertices
// are left.
//
// R ends at the edge radius, the length of the longest edge: no point takes the place, and so the value, of a vertex
// that it has no edge to. Where even that R leaves more than k vertices the graph is [Graph.Full]: points are judged,
// and kept only where a vertex takes them in. The printed algorithm goes on to any R, and then gives points the values
// of vertices far away.
//
// Labelled vertices come on top of k. They are never merged, moved or evicted and have multiplicity 1, unless
// [Config].Absorb lets them take in the points closer than R. A repartition looks at the labelled
// vertices first, then at the others by descending multiplicity, then by age; a vertex that is not
// kept goes to the nearest one that is.
//
// The guarantee is that every point lies within the sum of all R so far of its centroid ([Graph.Bound]), which is less
// than R·m/(m-1) unless R was cut short at the edge radius. It is not the guarantee of the doubling algorithm, which
// moves centroids.
//
// An edge is at most [Config].Reach long, whatever the kernel. The thesis bounds its weight alone. Between points of
// which the caller knows that one follows the other it may be [Config].Link long; such an edge ends with either vertex,
// also where that is merged into another one. No point is merged along it.
//
// # Summaries of other graphs
//
// [Config.Merge] takes the centroids of other graphs, with their multiplicities, within K, and [Graph.Union] judges points
// by a graph and by these together. The graph itself neither changes nor learns by it.
//
// How far a point lies from the centroid that stands for it, in three steps. In the graph that saw it, R grows to m·R at a
// repartition, and a point moves by less than the R of that moment: by less than R + R/m + R/m² + … = R·m/(m-1) in all,
// or by less than the sum of all R ([Graph.Bound]), which is what counts once R was cut short. Call that R₁. The centroid is
// then merged once, at R₂, into one of its group that is closer than R₂. By the triangle inequality the point lies within
// R₁ + R₂ of it, in whatever order points and summaries came. A summary of K₁ centroids that is merged
// again would add another R each time; but what was merged is not given on, so that there are two terms and no more. R₂
// is at most 2m times what the best K centres could reach ([Config.Merge] has the proof), and never beyond the edge
// radius: no centroid stands for one that it has no edge to.
//
// # The solution
//
// All that a decision needs is the solution at the point at hand. With the symmetric matrix A of the compact graph, and
// a the edges to the labelled vertices of a class, it is eᵀ A⁻¹ a: the system is solved once, for A⁻¹e, by conjugate
// gradients on the vertices that the point reaches without crossing a labelled vertex, and every class is one more
// product. No solution is kept from one point to the next. [Solution].Bound bounds the error of each value, rounding
// included; it is 1e-10 where the sums are of ordinary size, and grows with them, in proportion to the multiplicities.
//
// # Time and memory
//
// A point is compared with every vertex, but not by its coordinates: two bits for each coordinate prove of most
// vertices that they lie beyond the edge radius. The others are compared in float32, and those that may have an edge
// are measured in float64; a vertex is left out only where it is certainly too far, so that the verdicts are those of
// exact distances.
//
// Memory is taken for coordinates and for edges that exist, as they come, and is used again; nothing is as large as k²
// or as the number of vertices times that of classes. A repartition works on the stored lengths of edges.
//
// # Ageing
//
// With [Config].HalfLife the multiplicity of learned faces decays, and vertices that have faded are evicted where no
// value depends on them ([Graph.Age]). It is one answer to the thesis's open question of concept drift. Points remember
// how many half-lives had passed when they came, so that a half-life may be changed, and points taken back, in any
// order.
//
// # Caveats
//
// A Graph is not safe for concurrent use. A [Trial] is over once another point is tried or the graph has changed.
package quantized
