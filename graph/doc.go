// SPDX-License-Identifier: Apache-2.0

// Package graph builds similarity graphs and computes harmonic functions on them: a few vertices have labels, and every
// other vertex takes the average of its neighbours.
//
// [Similarity] or [Nearest] turn distances into a weighted graph, and [Harmonic] gives the labels of all its vertices.
// A graph is a symmetric matrix W of non-negative weights with a zero diagonal. Everything here is dense, direct and
// offline. It is for small problems, and for checks of the quantized and online learners.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011: "Graphs as Data Models" for the graphs, their Laplacians and
// random walks, "Regularized Harmonic Function" for [Harmonic], "Soft Harmonic Solution" for
// [Soft], and the proposition on the compact harmonic solution (Section "Online Semi-Supervised
// Learning With Quantized Graphs") for multiplicities.
//
// # Multiplicities
//
// A vertex may stand for several identical points. [Harmonic] and [Soft] take the number of points at each vertex.
// Their result equals the result on the larger graph in which each point is its own vertex and identical points are
// joined with weight 1.
//
// # Caveats
//
// The thesis divides squared distances by 2 sigma^2, by 2 p sigma^2 and by 2 K sigma^2 in
// different chapters. [Kernel] therefore names its denominator, and there is no default.
package graph
