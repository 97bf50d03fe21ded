-- SPDX-License-Identifier: Apache-2.0

-- Written by package office.
create table office(
	id integer primary key autoincrement,
	name text not null unique,
	code text not null, -- random
	temporary integer not null, -- 1: nothing outlives the program
	off integer not null, -- 1: faces of strangers are not kept
	last integer not null -- number of the last event
) strict;
