create table components (
  _id text not null primary key,
  identifier text not null unique,
  path text not null,
  builds integer not null,
  size integer not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  component_name text not null,
  description text not null,
  required_props text not null,
  content text not null
) strict;

create index components_by_time on components (created, _id);

create table builds (
  component text not null references components (_id) on delete cascade,
  path text not null,
  number integer not null,
  js text not null,
  css text not null,
  primary key (component, path)
) strict;

create index builds_by_path on builds (path);
