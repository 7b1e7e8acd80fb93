-- A deployment is one row: what it consists of is in `manifest`, and the files' contents are in file_contents. The one
-- with the highest activation is active. The manifest is last, so that lists do not read its pages.
create table site_deployments (
  _id text not null primary key,
  activation integer not null,
  spa integer not null,
  files integer not null,
  bytes integer not null,
  deployed_by text not null,
  created integer not null,
  manifest text not null
) strict, without rowid;
