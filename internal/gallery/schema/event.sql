-- SPDX-License-Identifier: Apache-2.0

-- Written by package office; who it is about by statements, too.
create table event(
	id integer primary key autoincrement,
	office integer not null references office(id) on delete cascade,
	number integer not null,
	kind text not null,
	person integer references person(id) on delete cascade,
	stranger integer not null, -- the group of unknown faces; 0: none
	camera text not null,
	trust text not null,
	at integer not null,
	known integer not null, -- when it was recognised
	sighting integer not null, -- that it is about; of a departure, that of the arrival; 0: none
	of integer not null, -- number of the event that it corrects, or 0
	told integer not null, -- the person of whom it was told last, or 0
	told_stranger integer not null, -- the group of which it was told last
	zone text not null default '', -- of the camera's picture in which the face was; '': none
	unique(office, number)
) strict;
create index event_of on event(person, office, at, number);
create index event_group on event(stranger);
create index event_sighting on event(sighting);
