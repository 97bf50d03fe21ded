-- SPDX-License-Identifier: Apache-2.0

-- Written by package office; whether it is undone, and its end, by package gallery.
create table statement( -- what a user said
	id integer primary key autoincrement,
	office integer not null references office(id) on delete cascade,
	at integer not null,
	kind text not null,
	person integer references person(id) on delete cascade, -- whom it names
	other integer references person(id) on delete cascade, -- who it was taken for
	name text not null, -- the new name of a person
	was text not null, -- the old one
	stranger integer not null,
	sighting integer not null,
	face integer not null, -- number of a picture of it
	undone integer not null default 0
) strict;
create index statement_of on statement(person);
create index statement_other on statement(other);
create index statement_about on statement(sighting);
