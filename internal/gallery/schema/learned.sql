-- SPDX-License-Identifier: Apache-2.0

-- What the learner of the gallery has learned: one row. Written by package gallery.
create table learned(
	id integer primary key check(id = 1),
	generation integer not null, -- rises with each change of what was learned
	faces blob not null,         -- CBOR map: the learner's number of each labelled face, and its row
	snapshot blob not null       -- of the learner, without the vectors of labelled faces
) strict;
