-- SPDX-License-Identifier: Apache-2.0

-- Written by package office.
create table film_with( -- who else is in a film
	film integer not null references sighting(id) on delete cascade,
	sighting integer not null,
	primary key(film, sighting)
) strict, without rowid;
create index film_of on film_with(sighting);
