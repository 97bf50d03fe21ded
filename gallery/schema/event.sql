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
	unique(office, number)
) strict;
create index event_of on event(person);
create index event_group on event(stranger);
