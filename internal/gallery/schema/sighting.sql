-- SPDX-License-Identifier: Apache-2.0

-- Somebody in view of a camera. Written by package office; who it is and its group by statements, too.
create table sighting(
	id integer primary key,
	office integer not null references office(id) on delete cascade,
	camera text not null,
	first integer not null,
	last integer not null,
	person integer references person(id) on delete cascade,
	trust text not null,
	stranger integer not null, -- the group of unknown faces; 0: none
	size integer not null -- bytes of its faces
) strict;
create index sighting_of on sighting(person, office, last);
create index sighting_in on sighting(office, last, size); -- size: their sum is read each minute
create index sighting_group on sighting(stranger, office, last);
create trigger film_gone before delete on sighting begin
	delete from film where sighting in (select film from film_with where sighting = old.id);
	delete from face where sighting = old.id and +stranger = 0 and -- +: by face_of, as nearly all are of no group
		not exists (select 1 from said where what = 'face' and of = number) and
		not exists (select 1 from label where label.number = face.number);
end;
