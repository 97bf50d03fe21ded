// SPDX-License-Identifier: Apache-2.0

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
// # How far
//
// A face is learned within one distance of a stored one, and recognised within larger ones of enrolled and of learned
// faces ([Learner.Radii]). They follow from false match rates that were measured of the space, and shrink with the
// number of enrolled faces and people. A face without an edge is judged by the faces that it sees within these; the
// weights of these edges continue the weights of the longest ordinary edges.
//
// A face that follows another one of the same person ([Observation].Follows) is joined to it further than others are: a
// must-link, which stays in the graph. Two faces of one frame are two people: nothing is learned of one through the
// other. Package sighting decides who follows whom, and which sightings may be learned from.
//
// # Learning safely
//
// An accepted face changes the graph, so it changes which faces are accepted later. These settings protect
// against that, from the first line of defence to the last:
//
//   - Settings.Reach bounds the length of an edge, whatever the kernel. Without it the graph percolates:
//     chains of weak edges join people and strangers. It is on by default where the space names one.
//   - Settings.Learn asks more of a face that is learned than Settings.Accept of one that is let in;
//     Settings.MaxHops bounds how many faces lie between a learned one and a labelled one; and
//     Settings.LearnCap how many faces of one person are learned in a window.
//   - [Learner.Drift] says how far the learned faces of a person have moved from the labelled faces, and
//     how steadily: an alarm for a program to read.
//   - Every learned face knows its observation, its time and the vertex through which it was accepted.
//     [Learner.Undo] and [Learner.UndoSince] take back what came after a moment, [Learner.Forget] a
//     person, and Settings.Freeze stops all learning.
//   - [Learner.Reject] is a negative label: this face is not that person's, nor is a face like it. [Learner.Unlearn]
//     takes back what some observations taught, and [Learner.Conflicts] names labels that contradict each other.
//   - With Settings.HalfLife learned faces count less and less, and go when no prediction needs it.
//     It is for people who change, and for places that change hands; labelled faces never age.
//
// What each of them costs in recall is in docs/results.md.
//
// # Room
//
// Settings.K bounds what is learned. Labelled and rejected faces come on top of it, as many as there are. Where K
// centroids are held and no two are near enough to be merged, faces are judged and no longer learned: [Learner.Full]
// says so, Verdict.NoRoom of a face, and Counts.PassedOver how many faces they were.
//
// # What is stored
//
// [Learner.Stored] lists what a learner keeps, and how surely it is a person's. [Compact] makes a learner of recordings
// offline, all faces at once, and [Learner.Adopt] takes in a face that stands for many.
//
// # Lessons
//
// [Learner.Lessons] is what a learner has learned itself: for each person centroids, their multiplicities, and the
// radius within which the faces of each lie. [Learner.TakeLessons] takes in those of another one, a source, in place of
// what that gave before, and [Learner.WithdrawLessons] takes them back. The people have to be enrolled here.
//
// What all sources gave is merged within K, which bounds it apart from what l learned itself: at most K centroids of
// its own, and at most K of others. A face that l names by what it has seen itself has that name, whatever others gave, and
// so one that l knows not to be a person's is not named. Every other face is judged by both together: the harmonic
// solution is that on the union of the two graphs ([quantized.Union]), and Verdict.Lent says so.
//
// The names of lessons decide which centroids are merged and which are forgotten. They
// name no face: a centroid is a vertex without a label, and whose it is follows from the ways by which labelled faces are
// reached here. Faces of bob under the name of alice look like bob. No lesson is a label, no face is anchored to one, and
// nothing that only lessons speak for is ever confirmed (package sighting).
//
// Lessons may be wrong, and nobody sees that of a centroid: invented ones lead from a person to a stranger in as small
// steps as they like, and a bound on their weights, or on their distance from the person's enrolled faces, does not stop
// them (docs/results.md). Whatever they are, they take away no name that l gives by itself. Names that they lend are as good
// as their source: sighting.Rules.Own has package sighting count them only on sightings of which l has named a face so
// without lessons, at some cost in recall, so that the worst lessons name nobody whom l would not have named there.
//
// Nothing of what l learns itself hangs on lessons: it judges a face that may be learned a second time, without them, and
// goes by that. A face that it does not reach so is learned with the help of others only where the caller says who it is
// ([Observation].As), and the verdict by all that is known says the same. Such a face, [Learner.Aided], is kept apart, as
// one of at most K, and its number is negative. So:
//
//   - With all sources withdrawn, l is to the last bit what it would be if it had been shown the same and never been
//     given anything, but for [Counts], which say what verdicts were. Callers have to have done the same: whom a program
//     takes to be confirmed, and so what it shows, can hang on verdicts.
//   - With one source withdrawn, all verdicts are the same as if this source had never given a lesson. All aided
//     faces go with any source: nobody knows which of them came through which.
//   - The order in which sources give makes no difference, nor what they gave before: the newest lessons count, sorted.
//   - Lessons gives nothing that came from others, and no aided face: nothing echoes.
//
// Forget removes the lessons of a person, and Rename renames them. Undo, Unlearn, Retract and Remove take back all
// aided faces, and leave lessons: those are what others have learned. With Settings.HalfLife, lessons fade from the
// moment when they were taken as what was learned here does, and are not used any more below 2^-20 of a face. MaxHops and
// LearnCap switch aided faces off. Lessons can be taken while Settings.Freeze is on.
//
// [Learner.Taken] says what was kept of lessons, and the radius within which the faces of each centroid lie (R₁ + R₂,
// package quantized). Merging waits for the first face that is judged, or for that call.
//
// # Taking back
//
//	                       takes away                                            leaves
//	Undo, UndoSince        faces learned after a moment                          labels; the radius R
//	Unlearn                faces learned from some observations, and every face  labels; other faces
//	                       accepted through one of these, merged or not
//	Retract                labels, and every face accepted through one of these;  other faces
//	                       a person with the last one, as Forget
//	Remove, learned face   as Unlearn of its own observation                     as Unlearn
//	Remove, label; Unlabel the label; with a person's last one as Forget         what was learned through it
//	Reject                 nothing; the face is known not to be the person's     labels; faces learned before
//	Forget                 a person: labels, rejected faces, every centroid to   faces of others; what came through the person
//	                       which a face accepted as theirs has gone              as somebody else's
//	WithdrawLessons        what a source gave; aided faces                       all that l learned itself
//	Configure, Freeze      nothing; Freeze stops learning                        all
//
// Where a centroid goes, all that was merged into it goes with it. Undo and Unlearn know the last Settings.Journal
// merged faces one by one; Undo refuses to go further back, and Unlearn leaves older merged faces where they are.
//
// # Snapshots
//
// [Learner.MarshalBinary] writes a CBOR map (RFC 8949, core deterministic encoding): the version of the format, which is
// 5, or 6 with lessons; the space, the settings, the names of the classes and which of them are of rejected faces, the counters, the time
// that faces carry; R, the bound of the distance from a centroid, whether there is no room, and the length up to which
// edges are listed; for each vertex an array of its coordinates as little-endian float32, its multiplicity, the number
// of faces it stands for, its class or -1, its sources, its origin (ID, observation, Unix time, via, hops, faces of its
// own, half-lives that had passed), the earlier vertices it has an edge to, and those that it is joined to as they
// follow each other; the last ID; the journal, an array for each entry (observation, Unix time, ID of the vertex, ID
// that it had as a vertex, via, faces, half-lives); the latest observation and time that fell out of it; the
// observation to which multiplicities are aged and the half-lives that have passed; and what was spent in the window of
// Settings.LearnCap. With lessons, also an array for each source (name, half-lives that had passed, and for each person
// the name, the centroids and the links), one for each aided face (number, name, coordinates, half-lives, the stored faces
// that it follows), and the number of the last of these. A learner restored from it goes on with the same bytes.
//
// [Learner.UnmarshalBinary] trusts nothing that it reads, but that all edges are listed: a file that hides some makes a
// learner that knows less. It reads versions 3 and 4, too, and repairs weights that version 4 could damage
// ([Learner.Warnings] then says so).
//
// # Caveats
//
// A Learner is not safe for concurrent use.
package online
