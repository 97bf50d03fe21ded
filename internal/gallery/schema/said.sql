-- SPDX-License-Identifier: Apache-2.0

-- The values of statements. Written by package gallery (said.go).
create table said( -- a value that a statement gave: of those that are not undone, the last one counts
	statement integer references statement(id) on delete cascade, -- null: the value before all statements
	what text not null,
	of integer not null,
	person integer references person(id) on delete cascade,
	text text,
	value integer
) strict;
create unique index said_of on said(what, of, coalesce(statement, 0));
create index said_by on said(statement);
create index said_person on said(person);
