-- SPDX-License-Identifier: Apache-2.0

-- Written by package office; whether it is ignored by statements, too.
create table stranger( -- a group of unknown faces
	id integer primary key,
	office integer not null references office(id) on delete cascade,
	last integer not null, -- the last sighting
	ignored integer not null
) strict;
