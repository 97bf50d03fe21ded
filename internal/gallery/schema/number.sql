-- SPDX-License-Identifier: Apache-2.0

-- Written by package gallery, which gives numbers.
create table number(kind text primary key, last integer not null) strict; -- numbers that were given
