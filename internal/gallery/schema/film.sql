-- SPDX-License-Identifier: Apache-2.0

-- Written by package office.
create table film( -- pictures of the beginning of a sighting
	sighting integer not null references sighting(id) on delete cascade,
	number integer not null, -- counts from 0
	jpeg blob not null,
	primary key(sighting, number)
) strict;
