-- SPDX-License-Identifier: Apache-2.0

-- The faces of sightings and of groups of unknown faces. Written by package office; the group by statements, too.
create table face(
	number integer primary key,
	office integer not null references office(id) on delete cascade,
	sighting integer references sighting(id) on delete set null,
	stranger integer not null, -- the group of unknown faces; 0: none
	camera text not null,
	at integer not null,
	sharp real not null, -- of its picture: variance of the Laplacian, less if the head is turned
	vector blob not null,
	jpeg blob
) strict;
create index face_of on face(sighting);
create index face_group on face(stranger);
