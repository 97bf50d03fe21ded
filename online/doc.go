// SPDX-License-Identifier: Apache-2.0

// Package online is the learner that a program holds: it gets a few labelled faces, recognises later faces, learns from
// them, and refuses strangers. Its memory has a bound.
//
// [New] makes a [Learner] for one feature space, [Learner.Label] shows it a person, and [Learner.Observe] judges the
// next face and learns from it; [Learner.ObserveFrame] does so for all faces of one frame, because nobody can be twice
// in a frame.
//
// It implements the online quantized harmonic solution with an epsilon-neighbourhood for outliers
// of M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011 (Section "Online Semi-Supervised Learning With Quantized Graphs";
// "Face recognition" in Section "Online Quantized SSL Experiments" for the outlier rule). The graph
// itself is in package quantized.
//
// # Verdicts
//
// Each person is a class with its own indicator column. The harmonic value of a face for a person is the probability
// that a random walk from the face meets one of that person's labelled faces before anybody else's and before it falls
// into a sink, which it may at every step. The largest value is the confidence of the verdict, and 1 minus the sum of
// all is the mass of the sink. One person alone works: the sink is the other side.
//
// A face that is far from the graph is an outlier: the verdict is unknown, and nothing changes.
//
// Each face is judged with the graph before the frame, alone or with others ([Learner.ObserveFrame]).
//
// # What learning cannot do
//
// Learning never takes away a name that the enrolled faces alone would give. If the graph does not tell who a face is,
// because the face is an outlier, has no path to anybody, or is as close to one person as to another, the enrolled
// faces are asked alone, with the unnormalised Laplacian and multiplicity 1: by edges to them if there are any, and
// otherwise by the enrolled faces within the distance Enrolled of [Radii]. Their name counts, and nothing is learned
// from the face. So a face gets a name if a learner that has learned nothing gives it one. There are four exceptions:
//
//   - A denial. A face near a rejected face, or near a learned face that was accepted as rejected, stays unknown.
//   - A rival. If the graph gives another person more than the person of the enrolled faces, the name is the other
//     person's: a learned face nearby may be better evidence than an enrolled face far away. On the recordings of
//     docs/results.md this never happened.
//   - A value below Settings.Accept. This setting asks for confidence in the whole graph, and the threshold that
//     faceauth-lab tune finds for a false match rate holds only if nothing else gives names. By default Accept is 0.
//   - Another face of the frame has the same name with a higher confidence.
//
// # How far
//
// A face is learned if it is within one distance of a stored face. It is recognised within larger distances of enrolled
// and of learned faces ([Learner.Radii]). These distances follow from the measured false match rates of the space, and
// shrink with the number of enrolled faces and people. A face without an edge is judged by the faces within these
// distances; the weights of these edges continue the weights of the longest ordinary edges.
//
// A face that follows another one of the same person ([Observation].Follows) is joined to it over a longer distance: a
// must-link, which stays in the graph. Two faces of one frame are two people: neither is learned through the other.
// Package sighting decides which face follows which, and which sightings may be learned.
//
// # Learning safely
//
// An accepted face changes the graph, so it changes which faces are accepted later. These settings protect
// against that, from the first line of defence to the last:
//
//   - Settings.Reach bounds the length of an edge, whatever the kernel. Without it the graph percolates:
//     chains of weak edges join people and strangers. It is on by default where the space names one.
//   - Settings.Learn can ask for more confidence to learn a face than Settings.Accept asks for to recognise it;
//     Settings.MaxHops bounds how many faces lie between a learned one and a labelled one; and Settings.LearnCap how
//     many faces of one person are learned in a window.
//   - [Learner.Drift] says how far the learned faces of a person have moved from the labelled faces, and how
//     steadily: a program can read it as an alarm.
//   - Every learned face has its observation, its time and the vertex through which it was accepted. [Learner.Undo]
//     and [Learner.UndoSince] take back all faces learned after a moment, [Learner.Forget] a person, and
//     Settings.Freeze stops all learning.
//   - [Learner.Reject] is a negative label: neither this face nor a similar face belongs to the person.
//     [Learner.Unlearn] takes back the faces learned from some observations, and [Learner.Conflicts] names labels
//     that contradict each other.
//   - With Settings.HalfLife the weight of learned faces falls, and they are removed when no prediction needs them.
//     It is for people who change, and for places where the people change. Labelled faces never age.
//
// docs/results.md has the recall that each setting costs.
//
// # Room
//
// Settings.K bounds the number of learned centroids. Labelled and rejected faces come on top of it, without a bound. If
// there are K centroids and no two are near enough to be merged, a face is learned only if a centroid takes it in, or
// if a person with more centroids gives one up (package quantized, "A full graph"). Verdict.NoRoom says of one face
// that it was not learned for this reason, and Counts.PassedOver counts these faces. [Learner.Room] says whether K is
// too small, and which K would do.
//
// # What is stored
//
// [Learner.Stored] lists the faces that a learner keeps, and how surely each belongs to a person. [Learner.Adopt] adds
// a face that stands for many.
//
// # Lessons
//
// [Learner.Lessons] returns the lessons of the faces that the learner saw itself: for each person the centroids, their
// multiplicities, and for each centroid the radius within which its faces lie. [Learner.TakeLessons] takes lessons of
// another learner, a source. They replace earlier lessons of this source. [Learner.WithdrawLessons] removes the lessons
// of a source, and the lessons that others learned through them. Their people must be enrolled here.
//
// The lessons of all sources together are merged to at most K centroids, beside at most K own centroids. If l names a
// face without lessons, the face has this name. If l knows that a face is not a person's, lessons do not give it this
// name. Every other face is judged by own centroids and lessons together: the harmonic solution is computed on the
// union of the two graphs ([quantized.Union]), and Verdict.Lent says so.
//
// The names of lessons decide which centroids are merged and which are forgotten. They give no face a name: a centroid
// is a vertex without a label, and its person follows from its paths to labelled faces of this learner. Faces of bob
// under the name alice therefore still look like bob. No lesson is a label, no face is anchored to a lesson, and a face
// that only lessons support is never confirmed (package sighting).
//
// Lessons may be wrong, and a centroid does not show it: invented centroids can lead from a person to a stranger in
// small steps. A bound on their weights, or on their distance from the enrolled faces of the person, does not stop them
// (docs/results.md). Even wrong lessons never remove a name that l gives without lessons. A name that only lessons
// support is as good as their source. With sighting.Rules.Own, package sighting counts such a name only in sightings in
// which l has given this name to a face without lessons. This costs some recall, but then even the worst lessons name
// nobody whom l would not have named there.
//
// What l learns itself does not depend on lessons: l judges a face that may be learned a second time, without lessons,
// and uses this verdict. If l does not reach a face without lessons, it learns the face with their help only if the
// caller names the person ([Observation].As) and the verdict with lessons says the same. Such an aided face
// ([Learner.Aided]) is stored separately, among at most K, and has a negative number. It becomes a lesson of its own,
// whose [Lesson].Through names every source of lessons that l had, and the sources through which these were learned: so
// a chain of turned heads that goes from one camera to the next is learned as before a single camera. Consequences:
//
//   - When all sources are withdrawn, l is bit for bit the learner that has seen the same faces and never had
//     lessons, except for [Counts], which count past verdicts. This holds if the caller has shown the same faces: a
//     program may choose them by verdicts, for example by confirmed people.
//   - With one source withdrawn, all verdicts are the same as if this source had never given a lesson, nor helped
//     others to learn one. All aided faces are removed with any source, because each may have had a share in each:
//     it may change which centroids are merged. [Learner.Through] lists these sources.
//   - The order of sources, and their earlier lessons, make no difference: only the newest lessons count, sorted.
//   - Lessons returns no centroid that was taken from others, so no face counts twice.
//
// Forget removes the lessons of a person, and Rename renames them. Undo, Unlearn, Retract and Remove take back all
// aided faces, and leave the lessons. With Settings.HalfLife, lessons lose weight like learned faces, from the moment
// when they were taken. Below a weight of 2^-20 of a face they are no longer used. MaxHops and LearnCap switch aided
// faces off. Lessons can be taken while Settings.Freeze is on.
//
// [Learner.Taken] counts the lessons that were kept, and gives the radius within which the faces of each centroid lie
// (R₁ + R₂, package quantized). Lessons are merged at this call, or when the next face is judged.
//
// # Taking back
//
//	                       takes away                                            leaves
//	Undo, UndoSince        faces learned after a moment                          labels; R, if faces are left
//	Unlearn                faces learned from some observations, and every face  labels; other faces
//	                       accepted through one of these, merged or not
//	Retract                labels, and every face accepted through one of these;  other faces
//	                       a person with the last one, as Forget
//	Remove, learned face   as Unlearn of its own observation                     as Unlearn
//	Remove, label; Unlabel the label; with a person's last one as Forget         what was learned through it
//	Reject                 nothing; the face is known not to be the person's     labels; faces learned before
//	Forget                 a person: labels, rejected faces, every centroid to   others' faces; what came through the
//	                       which a face accepted as theirs has gone              person as somebody else's
//	WithdrawLessons        what a source gave, or helped others to learn;        what l learned without help
//	                       aided faces
//	Configure, Freeze      nothing; Freeze stops learning                        all
//
// A contracted edge goes with either of the two faces whose edge it stands for, and with either centroid (package
// quantized, "Contracted edges").
//
// If a centroid is removed, all faces that were merged into it are removed with it. Undo and Unlearn know the last
// Settings.Journal merged faces one by one; Undo refuses to go further back, and Unlearn leaves older merged faces in
// place.
//
// # Snapshots
//
// [Learner.MarshalBinary] writes a CBOR map (RFC 8949, core deterministic encoding): the version of the format, 8; the
// space, the settings, the names of the classes and which of them are of rejected faces, the counters, the time that
// faces carry; R, the bound of the distance from a centroid, whether there is no room, and the length up to which edges
// are listed; for each vertex an array of its coordinates as little-endian float32, its multiplicity, the number of
// faces it stands for, its class or -1, its sources, its origin (ID, observation, Unix time, via, hops, faces of its
// own, half-lives that had passed), the earlier vertices it has an edge to, and those that it is joined to by a longer
// edge; the last ID; the contracted edges, an array of four IDs each: the vertices and the points; the journal, an
// array for each entry (observation, Unix time, ID of the vertex, ID that it had as a vertex, via, faces, half-lives);
// the latest observation and time that fell out of it; the observation to which multiplicities are aged and the
// half-lives that have passed; and what was spent in the window of Settings.LearnCap. With lessons, also an array for
// each source (name, half-lives that had passed, and the lessons: the person's name, the centroids, the links, and the
// sources through which it was learned), one for each aided face (number, name, coordinates, half-lives, the stored
// faces that it follows), the number of the last aided face, and the names of the sources through which the aided faces
// were learned. A restored learner continues and writes the same bytes.
//
// [Learner.UnmarshalBinary] checks everything except the completeness of the list of edges: a file that hides some
// edges makes a learner that knows less. It reads only this version, and says whether another one is newer or older.
//
// # Caveats
//
// A Learner is not safe for concurrent use.
package online
