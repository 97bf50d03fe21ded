// SPDX-License-Identifier: Apache-2.0

// Package online is the learner that a program holds: it gets a few labelled faces, recognises
// later faces, learns from them, and refuses strangers. Its memory has a bound.
//
// [New] makes a [Learner] for one feature space, [Learner.Label] shows it a person, who is a
// number, and [Learner.Observe] judges the next face and learns from it; [Learner.ObserveFrame]
// does so for all faces of one frame, because nobody can be twice in a frame.
// [Learner.MarshalBinary] writes a snapshot.
//
// It implements the online quantized harmonic solution with an epsilon-neighbourhood for outliers
// of M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs").
// The graph itself is in package quantized.
//
// # Verdicts
//
// Each person is a class with its own indicator column. The harmonic value of a face for a person
// is the probability that a random walk from the face meets one of that person's labelled faces
// before anybody else's and before it falls into a sink, which it may at every step. The largest
// value is the confidence of the verdict, and 1 minus the sum of all is the mass of the sink. One
// person alone works: the sink is the other side. A face far from the graph is an outlier: the
// verdict is unknown, and nothing changes. [Learner.Radii] has the distances.
//
// # What learning cannot do
//
// Learning never takes away a name that the enrolled faces alone would give: where the graph does
// not tell who a face is, the enrolled faces are asked alone, and nothing is learned from their
// answer. There are four exceptions:
//
//   - A denial. A face near a rejected face, or near a learned face that was accepted as rejected,
//     stays unknown.
//   - A rival. If the graph gives another person more than the person of the enrolled faces, the
//     verdict is the other person: a learned face nearby may be better evidence than an enrolled
//     face far away.
//   - A value below Settings.Accept, which asks for confidence in the whole graph. By default it is
//     0.
//   - Another face of the frame is nearer to the enrolled faces of the same person.
//
// # Learning safely
//
// An accepted face changes which faces are accepted later. From the first line of defence to the
// last:
//
//   - Settings.Reach bounds the length of an edge. Without it chains of weak edges join people and
//     strangers.
//   - Settings.Learn asks for more confidence to learn a face than to recognise it.
//   - [Learner.Drift] says how far and how steadily the learned faces of a person have moved.
//   - [Learner.Reject] is a negative label, and [Learner.Conflicts] names labels that contradict
//     each other.
//   - Settings.Freeze stops all learning.
//
// lab/NOTES.md has the recall that each setting costs. [Learner.Room] says whether Settings.K is
// large enough.
//
// # Taking back
//
//	                  takes away                             leaves
//	Undo, UndoSince   faces learned after a moment           labels; R, if faces are left
//	Unlearn           faces learned from a source, and       labels; other faces
//	                  every face accepted through one of
//	                  these, merged or not
//	Retract           labels, and every face accepted        other faces
//	                  through one of these; a person with
//	                  the last one, as Forget
//	Remove, learned   as Unlearn of its own observation      as Unlearn
//	Remove, label     the label; with a person's last one    what was learned through it
//	                  as Forget
//	Reject            nothing; the face is known not to be   labels; faces learned before
//	                  the person's
//	Forget            a person: labels, rejected faces,      others' faces; what came through
//	                  every centroid to which a face         the person as somebody else's
//	                  accepted as theirs has gone
//	Configure,        nothing; Freeze stops learning         all
//	Freeze
//
// A removed centroid goes with all faces that were merged into it. The last 16,384 merged faces are
// known one by one; Undo refuses to go further back, and Unlearn leaves older merged faces in
// place.
//
// # Caveats
//
// A Learner is not safe for concurrent use.
package online
