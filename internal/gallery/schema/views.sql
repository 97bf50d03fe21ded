-- SPDX-License-Identifier: Apache-2.0

-- For other programs, which may read them: a view stays as it is, or gets another number.
create view people_v1 as select id, name, enrolled,
	(select count(*) from label where label.person = person.id and not rejected and valid) as faces
	from person where faces > 0;
create view faces_v1 as select number as id, person, name, rejected, length(vector)/4 as dimensions
	from label join person on person.id = label.person where valid;
create view vectors_v1 as select number as id, person, rejected, vector from label where valid;
create view events_v1 as select office.name as office, number, kind, event.person,
	(select name from person where id = event.person) as name, stranger, camera, trust, at, known
	from event join office on office.id = event.office;
create view present_v1 as select office.name as office, person, person.name, since, last, camera, trust
	from present join office on office.id = present.office join person on person.id = person;
create view sightings_v1 as select office.name as office, sighting.id as number, camera,
	strftime('%Y-%m-%dT%H:%M:%fZ', first / 1e9, 'unixepoch') as first,
	strftime('%Y-%m-%dT%H:%M:%fZ', last / 1e9, 'unixepoch') as last, person,
	(select name from person where id = person) as name, trust
	from sighting join office on office.id = sighting.office;
