-- When the tenant came to where it is now; empty for one that was never moved.
alter table tenants add column moved integer;

-- What is in PostgreSQL without being served from there: rows of tenants that were deleted or moved, and unfinished copies.
create table remains (
  uid text not null,
  home text not null,
  since integer not null,
  primary key (uid, home)
) strict;
