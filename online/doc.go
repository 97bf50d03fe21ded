// Package online is the learner that a program holds: it is shown a few labelled faces, recognises
// the faces that follow, keeps learning from them, refuses strangers, and never grows.
//
// [New] makes a [Learner] for one feature space, [Learner.Label] shows it a person, and
// [Learner.Observe] judges the next face and learns from it; [Learner.ObserveFrame] does so for all
// the faces of one frame, in which nobody can be twice.
//
// It implements the online quantized harmonic solution with an epsilon-neighbourhood for outliers
// of M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs";
// "Face recognition" in Section "Online Quantized SSL Experiments" for the outlier rule). The graph
// itself is in package quantized.
//
// # Verdicts
//
// Each person is a class with an indicator column of its own. The harmonic value of a face for a
// person is the probability that a random walk from the face meets one of that person's labelled
// faces before anybody else's and before it falls into a sink, which it may at every step. The
// largest value is the confidence of the verdict, and 1 minus the sum of all is the mass of the
// sink. One person alone works: the sink is the other side.
//
// A face that is nowhere near the graph is an outlier: the verdict is unknown, and nothing changes.
//
// # Snapshots
//
// [Learner.MarshalBinary] writes a CBOR map (RFC 8949, core deterministic encoding): the version of
// the format, now 2, the space, the settings, the names, the counters, and for each vertex its coordinates
// as little-endian float32, its multiplicity, label, sources, harmonic values and origin, and the
// journal as pairs of an observation and the vertex that took it in. A learner restored
// from it goes on with the same bytes. [Learner.UnmarshalBinary] trusts nothing that it reads, and
// reads version 1, too, which had no longest edge, no origins and no journal.
//
// # Caveats
//
// An accepted face changes the graph, so whoever is accepted shapes who will be. Settings.Learn
// asks more of a face that is learned than Settings.Accept of one that is let in.
//
// A Learner is not safe for concurrent use.
package online
