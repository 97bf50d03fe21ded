-- SPDX-License-Identifier: Apache-2.0

-- Who is there. Written by package office.
create table present(
	office integer not null references office(id) on delete cascade,
	person integer not null references person(id) on delete cascade,
	since integer not null,
	last integer not null, -- the last sighting
	camera text not null,
	trust text not null,
	sighting integer not null, -- with which they came, or 0
	zone text not null default '', -- of the last sighting; '': none
	primary key(office, person)
) strict, without rowid;
create index present_of on present(person);
