// SPDX-License-Identifier: Apache-2.0

// Package quantized keeps a similarity graph of labelled points and at most k centroids, and computes the harmonic
// function on it. The centroids stand for the points of an endless stream.
//
// [New] makes an empty [Graph] and [Graph.Label] adds a labelled point. [Graph.Look] tries a point on the graph, and
// [Trial.Solve] gives the harmonic solution there; the graph does not change. [Graph.Place] tries a point that
// [Candidate.Keep] can keep.
//
// The package implements the incremental k-centers algorithm and the online quantized harmonic solution of M. Valko,
// Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised Learning, 2011 (Section "Online
// Semi-Supervised Learning With Quantized Graphs"; Charikar et al. 1997 for the doubling algorithm that it modifies). A
// vertex is a centroid: one of the points themselves, with the number of points that it stands for, its multiplicity.
//
// # Where the text is open
//
// The printed algorithm names no first radius R, and one multiplication of R may not shrink the set. Here R is 0 until
// there are more than k learned vertices for the first time; it then becomes the smallest positive distance between two
// vertices that are not both labelled, and the set is repartitioned for R·m, R·m², … until at most k learned vertices
// are left.
//
// R never exceeds the edge radius, the length of the longest edge, so a point is never merged into a vertex without an
// edge to it. In the printed algorithm R has no limit, so points get the values of vertices far away. R begins anew at
// 0 when k becomes larger ([Graph.Configure]), and when no learned vertex is left.
//
// Labelled vertices come on top of k. They are never merged, moved or evicted and have multiplicity 1, unless
// [Config].Absorb lets them take in the points closer than R. A repartition looks at the labelled vertices first, then
// at the others by descending multiplicity, then by age; a vertex that is not kept is merged into the nearest kept
// vertex.
//
// The distance from a point to its centroid is at most the sum of all R until now ([Graph.Bound]). This sum is less
// than R·m/(m-1) unless R was cut short at the edge radius, or began anew. This differs from the guarantee of the
// doubling algorithm, which moves centroids.
//
// An edge is at most [Config].Reach long for any kernel; the thesis bounds only its weight. If the caller says that one
// point follows another, their edge may be [Config].Link long: a link. No point is merged along it.
//
// # Contracted edges
//
// In the printed algorithm a merged vertex loses its edges. Where R is near the edge radius the vertices that are left
// have no edges to each other, and a chain of points that led from a label to a turned head breaks. So a repartition
// contracts edges, as the contraction of a graph does: if i is merged into a, and j into b, the edge of i and j goes on
// as a link of a and b ([Graph.Links]), with the weight of a link of the length of a and b. This happens if
//
//   - i and j share a class, their label or a class through which their points were accepted, before the merge.
//     Otherwise the face of one person that lies beside another person's would carry the whole centroid over;
//   - a and b are two vertices without an edge, not both labelled, and at most [Config].Link apart. A longer link would
//     join points that nobody has seen to follow each other.
//
// Of several edges between the same a and b, the first one in the order of the vertices counts. Consequences:
//
//   - No point and no centroid moves, and R does not change, so [Graph.Bound] holds as before.
//   - A link remembers the two points whose edge it stands for. It goes if either is taken back ([Graph.Undo],
//     [Graph.Unlearn], [Graph.Forget]), or if either of its vertices is removed. If it is contracted again, the points
//     stay the same. A point that was merged before the journal begins cannot be taken back, and neither can its link.
//   - A link does not age. Its weight in the solution falls with the multiplicities of its vertices. [Graph.Age] evicts
//     a vertex only if no value depends on it, along links or edges.
//   - With [Config].Absorb a labelled vertex can be a or b.
//   - A [State] has the links. A [Union] has the links of its graph. [Config.Merge] contracts the links of summaries.
//   - A change of the configuration turns a link into an ordinary edge if edges are long enough now, and removes it if
//     links are too short.
//
// # A full graph
//
// If even R at the edge radius leaves more than k vertices, the graph is [Graph.Full]. A point is then kept if a vertex
// takes it in. Another point is kept only if its class has at least two learned vertices less than the class that has
// the most of them (vertices of several classes do not count). That class gives up one vertex: of those that no other
// vertex needs for its path to a labelled vertex, the one that is furthest from the labelled vertices of the class, and
// not near the point. It is removed as [Graph.Remove] does. So each class gets as many vertices as it needs, or as many
// as any other. Otherwise whoever comes first takes all.
//
// # Summaries of other graphs
//
// [Config.Merge] merges the centroids of other graphs, with their multiplicities, to at most K, and [Graph.Union]
// judges points with a graph and these centroids together. The graph itself does not change.
//
// The distance from a point to its centroid has a bound, in three steps. First, in the graph of the point, R grows to
// m·R at each repartition, and a point moves by less than the present R. The sum of these moves is less than R + R/m +
// R/m² + … = R·m/(m-1). If R was cut short, it is less than the sum of all R ([Graph.Bound]). Call this bound R₁.
// Second, the centroid is merged once, into a centroid of its group that is closer than R₂. Third, by the triangle
// inequality the point lies within R₁ + R₂ of this centroid. The order of points and summaries does not matter. Each
// further merge would add another R, but merged summaries are never given to other graphs, so there are only two terms.
// R₂ is at most 2m times the radius of the best K centres ([Config.Merge] has the proof), and at most the edge radius,
// so a centroid has an edge to each centroid that it stands for.
//
// # The solution
//
// A decision needs only the solution at the current point. With the symmetric matrix A of the compact graph, and a the
// edges to the labelled vertices of a class, it is eᵀ A⁻¹ a: the system is solved once, for A⁻¹e, by conjugate
// gradients on the vertices that the point reaches without crossing a labelled vertex, and every class costs one more
// product. No solution is kept for the next point. [Solution].Bound bounds the error of each value, rounding included;
// it is 1e-10 for sums of ordinary size, and grows in proportion to the multiplicities.
//
// # Time and memory
//
// A point is compared with every vertex, first with two bits for each coordinate: they prove that most vertices lie
// beyond the edge radius. The other vertices are compared in float32, and possible neighbours are measured in float64.
// A vertex is left out only if it is certainly too far, so the verdicts are the same as with exact distances.
//
// [Graph.Place] takes over the edges and the solution of [Graph.Look], if the same point was tried last and the graph
// has not changed.
//
// Memory is allocated only for existing coordinates and edges, and is reused. Nothing has a size of k², or of the
// number of vertices times the number of classes. A repartition works on the stored lengths of edges.
//
// # Ageing
//
// With [Config].HalfLife the multiplicity of learned faces decays, and faded vertices are evicted if no value depends
// on them ([Graph.Age]). It is one answer to the thesis's open question of concept drift. Each point has the number of
// half-lives that had passed when it came, so the half-life can change, and points can be taken back, in any order.
//
// # Caveats
//
// A Graph is not safe for concurrent use. A [Trial] ends when another point is tried or the graph changes.
package quantized
