// SPDX-License-Identifier: Apache-2.0

// Package quantized keeps a similarity graph of labelled points and at most k centroids, which
// stand for the points of an endless stream, and computes the harmonic function on it.
//
// [New] makes an empty [Graph] and [Graph.Label] adds a labelled point. [Graph.Look] tries a point
// on the graph, and [Trial.Solve] gives the harmonic solution there; the graph does not change.
// [Graph.Place] tries a point that [Candidate.Keep] can keep.
//
// The package implements the incremental k-centers algorithm and the online quantized harmonic
// solution of M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs";
// Charikar et al. 1997 for the doubling algorithm that it modifies). A vertex is one of the points
// themselves, with the number of points that it stands for, its multiplicity. Labelled vertices
// come on top of k: they are never merged, moved or evicted, and have multiplicity 1.
//
// These differ from the printed algorithm: R has a first value and a limit, and a merge goes to the
// nearest vertex (kcenters.go); merged vertices pass on their edges (links.go); a full graph is
// shared between the classes (share.go). An edge has a greatest length for any kernel
// ([Config].Reach, [Config].Link).
//
// A [Kernel] turns the [Distance] of two points into the weight of an edge (thesis, "Graphs as Data
// Models"). The thesis divides squared distances by 2 sigma^2, by 2 p sigma^2 and by 2 K sigma^2 in
// different chapters, so a kernel names its denominator, and there is no default.
//
// # Caveats
//
// A Graph is not safe for concurrent use. A [Trial] ends when another point is tried or the graph
// changes.
package quantized
