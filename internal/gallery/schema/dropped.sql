-- SPDX-License-Identifier: Apache-2.0

-- Written by a program without a learner (OpenRows); package gallery empties it.
create table dropped( -- labels that a program without a learner has deleted, until a learner has followed
	id integer primary key,
	person integer not null,
	number integer not null,
	rejected integer not null,
	vector blob not null
) strict;
